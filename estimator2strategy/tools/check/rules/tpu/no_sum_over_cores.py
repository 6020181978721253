"""Cores that train each for itself."""

from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit

_SUM = "CrossReplicaSum"


def find(recorded, subject):
    if not (recorded.on_cores and recorded.mode == Mode.TRAIN):
        return
    nodes = recorded.nodes
    trainable = {v.op.name: v.op for v in recorded.graph.get_collection("trainable_variables")}
    fed = {tensor.op.name for tensor in recorded.fed}
    for op in recorded.core_ops:
        for name in recorded.writes(op) & set(trainable):
            # A value that a core computes from its batch, and that no sum has made common.
            if fed & recorded.behind([op.name], stop_at={_SUM}, only_data=True) or (
                recorded.refused and not any(n.op == _SUM for n in nodes.nodes)
            ):
                yield Hit(
                    op, f"each core changes {name!r} by what it makes of its own part of the batch"
                )
