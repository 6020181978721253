"""Models that do not do here what they did where their golden was recorded."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S626",
    "not-the-golden",
    Severity.ERROR,
    title="A model that does not do here what a golden (--golden) recorded of it",
    why="The batches of the golden were replayed from its checkpoint, and something that was "
    "recorded there (names, losses, gradients, slots, metrics, predictions, the exported model) "
    "came out as another one, by more than float32 and other kernels explain.",
    fix="Look at the first tier that fails: all before it are the same. The command e2s verify "
    "makes the same comparison, and can be given wider tolerances.",
    bad=None,
    good=None,
    guide="verify.md",
    level=Evidence.VERIFIED,
)
def find(recorded, subject):
    return ()  # the level finds it
