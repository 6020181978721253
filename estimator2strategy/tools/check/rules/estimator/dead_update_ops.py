"""Moving averages that stay as they are."""

from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    if recorded.mode != Mode.TRAIN:
        return
    for update in dict.fromkeys(recorded.graph.get_collection("update_ops")):
        op = getattr(update, "op", update)
        if op.name not in recorded.step_ops:
            yield Hit(op, f"no step runs the update {op.name!r}")
