"""Comments that silence what is not there."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S005",
    "unused-suppression",
    Severity.WARNING,
    title="A comment that silences a finding which is not there",
    why="It would hide the next one of its kind.",
    fix="Remove the comment.",
    bad="size = 8  # e2s: ignore[E2S003] it is used by both\n",
    good="size = 8\n",
)
def find(source, context):
    return ()  # found where comments are applied
