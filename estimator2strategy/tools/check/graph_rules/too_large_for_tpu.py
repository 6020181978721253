"""Steps that do not fit into a TPU's memory."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S704",
    "too-large-for-tpu",
    Severity.ERROR,
    title="The step does not fit into the memory of a core",
    why="The compiler in libtpu says how much memory the step needs on a core, at its peak: "
    "variables, the batch, and what lies between. On the TPU it would end with RESOURCE_EXHAUSTED.",
    fix="Take a smaller batch (--fit-batch finds the largest), bfloat16 activations, or an "
    "optimizer with fewer slots.",
    bad=None,
    good=None,
    guide="tpu_compile.md",
    level=Evidence.TPU_COMPILED,
)
def find(recorded, subject):
    return ()  # the level finds it
