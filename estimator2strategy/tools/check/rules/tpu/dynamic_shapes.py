"""Ops whose result has a size that depends on values."""

import ast
import re

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.source import parents

_NOT_NONE = re.compile(r"\w+ is not None")

_INSTEAD = {
    "tf.boolean_mask": "Multiply by the mask, or use it as weights.",
    "tf.unique": "Keep duplicates, and weigh them.",
    "tf.unique_with_counts": "Keep duplicates, and weigh them.",
    "tf.setdiff1d": "Use a mask.",
    "tf.dynamic_partition": "Use a mask for each part.",
    "tf.sparse_to_dense": "Use tf.one_hot or tf.scatter_nd with a fixed shape.",
    "tf.image.non_max_suppression": "Use tf.image.non_max_suppression_padded.",
    "tf.where": "Give both values: tf.where(condition, x, y).",
}


def find(source, context):
    for call in context.project.tpu_code.get(source, ()):
        if call.name not in _INSTEAD:
            continue
        if call.name == "tf.where" and (
            call.is_open or call.argument("x", 1) is not None or call.argument("name") is not None
        ):
            continue
        if _is_optional(call):
            continue
        message = f"the size of what {call.name} gives depends on values"
        yield Hit(call.node, message, fix=_INSTEAD[call.name])


def _is_optional(call):
    """True under `if x is not None`, where the function itself may have set x to None.

    Layers of Transformers remove padding in this way, and programs switch it off for TPUs.
    """
    for outer in parents(call.node):
        if outer is call.scope.function:
            return False
        if isinstance(outer, ast.If) and _NOT_NONE.fullmatch(ast.unparse(outer.test)):
            name = outer.test.left.id
            where = call.scope.find(name)
            if where is not None and any(map(_may_be_none, where.bindings[name])):
                return True
    return False


def _may_be_none(value):
    """True for `None if ... else x`, or the other way round."""
    arms = (value.body, value.orelse) if isinstance(value, ast.IfExp) else ()
    return any(isinstance(arm, ast.Constant) and arm.value is None for arm in arms)
