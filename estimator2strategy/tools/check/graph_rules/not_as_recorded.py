"""Train functions that a TPUStrategy cannot send."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S702",
    "not-as-recorded",
    Severity.ERROR,
    title="A TPU cannot be sent the step as it was recorded",
    why="The train function was traced under a genuine TPUStrategy, which needs no TPU, and what "
    "it would send is not what model_fn built.",
    fix="Do what the message says; on a TPU the program would end before its first step, or train "
    "something else.",
    bad=None,
    good=None,
    guide="tpu_compile.md",
    level=Evidence.TPU_TRACED,
)
def find(recorded, subject):
    return ()  # the level finds it
