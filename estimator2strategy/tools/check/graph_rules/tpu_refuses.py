"""Steps that the compiler of a TPU refuses."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S703",
    "tpu-refuses",
    Severity.ERROR,
    title="The TPU's compiler refuses the step",
    why="The step was given to the compiler in libtpu, for a TPU that is not there, and it made no "
    "program of it.",
    fix="Do what the message says.",
    bad=None,
    good=None,
    guide="tpu_compile.md",
    level=Evidence.TPU_COMPILED,
)
def find(recorded, subject):
    return ()  # the level finds it
