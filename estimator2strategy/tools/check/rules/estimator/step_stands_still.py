"""A global step that stands still."""

from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    if recorded.mode != Mode.TRAIN:
        return
    steps = {v.op.name for v in recorded.graph.get_collection("global_step")}
    if not steps & set(recorded.nodes.variables_written(recorded.root_ops)):
        yield Hit(recorded.train_op, "train_op does not change the global step")
