"""Calls with the arguments that functions had before TensorFlow 1.0."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.python2_names import unguarded
from estimator2strategy.tools.reader import symbol_uses, unreached

# Function -> its arguments by the names that they had, and have since TensorFlow 1.0.
_RENAMED = {
    "tf.concat": {"concat_dim": "axis"},
    "tf.split": {"split_dim": "axis", "num_split": "num_or_size_splits"},
    "tf.SparseTensor": {"shape": "dense_shape"},
}
# Function -> how many arguments by position tell the older order, where the first is a number.
_DIMENSION_FIRST = {
    "tf.concat": (2, "tf.concat(values, axis)"),
    "tf.split": (3, "tf.split(value, num_or_size_splits, axis)"),
}
_CROSS_ENTROPIES = {
    f"tf.nn.{name}_cross_entropy_with_logits" for name in ("sigmoid", "softmax", "sparse_softmax")
}


def find(source, context):
    for call in source.calls:
        if call.is_open or call.name not in _KNOWN:
            continue
        flavour = symbol_uses.flavour(source.resolve(call.node.func, call.scope))
        problem = _problem(call, _takes_by_name(source, context, flavour))
        if problem is None or not unguarded(call.node):
            continue
        if not unreached.is_tried(call.node, unreached.ANY | {"TypeError", "ValueError"}):
            message, fix = problem
            yield Hit(call.node, message, fix=fix)


_KNOWN = {*_RENAMED, *_DIMENSION_FIRST, *_CROSS_ENTROPIES}


def _takes_by_name(source, context, flavour):
    """True if cross entropies are those of TF 1.15, which take no argument by position."""
    if flavour is symbol_uses.Flavour.V2 or context.runs_on_tensorflow2(source, flavour):
        return False
    return flavour is not symbol_uses.Flavour.PLAIN or symbol_uses.is_legacy(source)


def _problem(call, by_name):
    """(what is wrong with the arguments of a call, what to write); None if nothing is."""
    given = call.node.args
    for keyword in call.node.keywords:
        now = _RENAMED.get(call.name, {}).get(keyword.arg)
        if now is not None:
            return (
                f"{call.name} has no argument {keyword.arg!r} since TensorFlow 1.0",
                f"It is {now}.",
            )
    if call.name in _DIMENSION_FIRST:
        count, today = _DIMENSION_FIRST[call.name]
        if len(given) >= count and _is_number(given[0]) and not _is_number(given[count - 1]):
            message = f"{call.name} takes its dimension last since TensorFlow 1.0, not first"
            return message, f"Write {today}."
    if call.name in _CROSS_ENTROPIES and by_name and given and not _is_none(given[0]):
        message = f"{call.name} takes arguments by name only: a ValueError since TensorFlow 1.0"
        return message, "Write labels=... and logits=...; TensorFlow 0.x took logits first."
    return None


def _is_number(node):
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_none(node):
    return isinstance(node, ast.Constant) and node.value is None
