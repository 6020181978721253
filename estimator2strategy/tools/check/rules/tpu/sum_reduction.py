"""CrossShardOptimizer with a sum for a mean."""

from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for call in source.calls:
        reduction = (
            call.argument("reduction", 1) if is_tf(call.name, "CrossShardOptimizer") else None
        )
        if reduction is not None and is_tf(source.name(reduction, call.scope), "SUM"):
            yield Hit(call.node, "the gradients of the cores are added, not averaged")
