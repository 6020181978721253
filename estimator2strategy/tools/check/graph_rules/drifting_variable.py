"""Variables that are not the same on all cores."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule import rule


@rule(
    "E2S625",
    "drifting-variable",
    Severity.INFO,
    title="A variable that has another value on each core after a step",
    why="Each core changes its own copy, and nothing sums over them. Checkpoints have the first "
    "core's. Moving averages of batch norm have always been so on TPUs.",
    fix="Where it is meant to be one value, sum or average over the cores with "
    "tf.tpu.cross_replica_sum before it is assigned.",
    bad=None,
    good=None,
    level=Evidence.REPLICATED,
)
def find(recorded, subject):
    return ()  # found by levels/replicated.py
