"""Gradient clipping before the sum over the cores."""

from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    if "CrossShardOptimizer" not in source.text:
        return  # what sums there may sum before it is clipped, as Horovod does
    for call in context.project.tpu_code.get(source, ()):
        if is_tf(call.name, "clip_by_global_norm"):
            yield Hit(call.node, "clips each core's own gradients")
