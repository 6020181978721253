"""Batches that cores cannot share."""

import ast

from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit

# Argument, its position, the method that takes batches of this size.
_SIZES = (("train_batch_size", 5, "train"), ("eval_batch_size", 6, "evaluate"))


def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator") or call.value("use_tpu", 4) is False:
            continue
        used = _methods(call)
        for name, position, method in _SIZES:
            size = call.value(name, position)
            if used is not None and method not in used:
                continue
            if isinstance(size, int) and not isinstance(size, bool) and size % 8:
                yield Hit(call.argument(name, position), f"{name}={size} is no multiple of 8")


def _methods(call):
    """The methods of an estimator that its file calls; None if it may be used in other ways."""
    target = getattr(call.node.parent, "targets", [None])[0]
    where = call.scope.find(target.id) if isinstance(target, ast.Name) else None
    if where is None or len(where.bindings[target.id]) > 1 or where.is_class:
        return None
    found = set()
    for node, scope in call.source.chains:
        name = node.value if isinstance(node, ast.Attribute) else node
        if isinstance(name, ast.Name) and name.id == target.id and scope.find(name.id) is where:
            if name is node:
                return None
            found.add(node.attr)
    return found or None
