"""A loss that is divided by the number of cores, and again by CrossShardOptimizer."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf
from estimator2strategy.tools.reader.source import names_in

_CORES = {"num_replicas", "num_shards", "num_cores", "num_tpu_cores", "number_of_shards"}


def find(source, context):
    for model in context.project.model_functions:
        if model.source is not source or not context.project.may_use_tpu(model):
            continue
        own = context.project.calls_of(model.definition)
        makers = [call for call in own if is_tf(call.name, "CrossShardOptimizer")]
        if not makers or any(call.argument("reduction", 1) is not None for call in makers):
            continue
        for node in ast.walk(model.node):
            divided = None
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                divided = node.left, node.right
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
                divided = node.target, node.value
            if divided is None or not isinstance(divided[0], ast.Name):
                continue
            if "loss" in divided[0].id.lower() and names_in(divided[1]) & _CORES:
                yield Hit(node, f"`{ast.unparse(node)}`: CrossShardOptimizer divides it again")
