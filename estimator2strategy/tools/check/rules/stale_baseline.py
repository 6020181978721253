"""Entries of the baseline that are done."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S006",
    "stale-baseline",
    Severity.WARNING,
    title="An entry of the baseline that is not found any more",
    why="It would hide the next finding of its kind; a baseline only shrinks.",
    fix="Run `e2s check ... --prune-baseline`, and commit the file.",
    bad=None,
    good=None,
)
def find(source, context):
    return ()  # found where the baseline is applied
