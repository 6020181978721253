"""Files that no Python can read."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S001",
    "unparsable",
    Severity.ERROR,
    title="A file that cannot be parsed",
    why="Nothing in it was checked, so no verdict covers it.",
    fix="Mend the file, or leave it out with `exclude`.",
    bad="def model_fn(features, labels, mode:\n    pass\n",
    good="def model_fn(features, labels, mode):\n    pass\n",
)
def find(source, context):
    return ()  # found where files are read
