"""Steps that XLA refuses as a whole."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S701",
    "does-not-compile",
    Severity.ERROR,
    title="XLA refuses the step",
    why="XLA has all of its ops, but cannot make one program of fixed shapes of them. A TPU needs "
    "that too.",
    fix="Do what the message says.",
    bad=None,
    good=None,
    guide="tpu_compile.md",
    level=Evidence.CPU_COMPILED,
)
def find(recorded, subject):
    return ()  # the level finds it
