"""Comments that silence, and do not say what or why."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S004",
    "suppression-without-reason",
    Severity.WARNING,
    title="A comment that silences without naming a rule and a reason",
    why="Who reads it later cannot tell whether it still holds; a mistyped id silences nothing.",
    fix="Write `# e2s: ignore[E2S123] the reason`.",
    bad="size = 8  # e2s: ignore\n",
    good="size = 8\n",
)
def find(source, context):
    return ()  # found where comments are applied
