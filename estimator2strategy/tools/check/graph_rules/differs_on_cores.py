"""Differences of which the cause is not known."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S624",
    "differs-on-cores",
    Severity.WARNING,
    title="A step that is another one on several cores, for a reason that is not known",
    why="One step was run on emulated cores and on one device, from the same variables and on the "
    "same batch, and gave other numbers. None of the usual reasons (E2S620 to E2S623) fits.",
    fix="Look at the tensor that is named: what of it depends on how many examples a core has?",
    bad=None,
    good=None,
    level=Evidence.REPLICATED,
)
def find(recorded, subject):
    return ()  # found by levels/causes.py
