"""Calls whose arguments TF2 takes for something else."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.names import libraries, tables
from estimator2strategy.tools.reader import symbol_uses, unreached


def find(source, context):
    for call in source.calls:
        change = tables.changed(call.name) if call.name else None
        of_keras = list(_of_keras(call))
        if change is None and not of_keras:
            continue
        flavour = symbol_uses.flavour(source.resolve(call.node.func, call.scope))
        plain = flavour is symbol_uses.Flavour.PLAIN
        if unreached.is_tried(call.node, ["TypeError"]):
            continue
        if not plain or not context.runs_on_tensorflow2(source, flavour):
            continue
        for problem in of_keras:
            yield Hit(call.node, problem, fix=_KERAS_FIX)
        if change is None:
            continue
        # An argument by position may be meant as in TF2 already.
        legacy = symbol_uses.is_legacy(source)
        for problem in differences(call, change) if legacy else _names(call, change):
            yield Hit(call.node, f"{call.name}: {problem}")


def _of_keras(call):
    """The arguments that Keras 3 has not, which is the `tf.keras` of TensorFlow 2.16 and newer."""
    name = call.name or ""
    gone = _KERAS.get(name, {})
    if name.startswith("tf.keras.optimizers."):
        gone = {"lr": "it is learning_rate"}
    if name.startswith(("tf.keras.layers.", "tf.keras.optimizers.")):
        kept = {*gone, "batch_size", "input_dtype"}
        dropped = libraries.refused(name.removeprefix("tf.")) - kept
        gone = {**gone, **dict.fromkeys(sorted(dropped), "leave it out")}
    for argument, instead in gone.items():
        if call.argument(argument) is not None:
            yield f"{name}: Keras 3 has no argument {argument!r}; {instead}"


_KERAS_FIX = "Change the argument, or stay with Keras 2: tf-keras and TF_USE_LEGACY_KERAS=1."
_WEIGHTS = {"weights": "call set_weights, or give an initializer"}
_ROWS_FIRST = {"time_major": "transpose the inputs"}
# Name -> its arguments that are gone, and what has their place.
_KERAS = {
    "tf.keras.Input": {"batch_input_shape": "it is batch_shape"},
    "tf.keras.layers.BatchNormalization": {
        "fused": "leave it out",
        "virtual_batch_size": "leave it out",
    },
    "tf.keras.layers.Conv2D": _WEIGHTS,
    "tf.keras.layers.Dense": _WEIGHTS,
    "tf.keras.layers.GRU": _ROWS_FIRST,
    "tf.keras.layers.Input": {"batch_input_shape": "it is batch_shape"},
    "tf.keras.layers.LSTM": _ROWS_FIRST,
}


def differences(call, change):
    """The arguments of a TF1 call that TF2 refuses, or takes for something else."""
    return [*_names(call, change), *_positions(call, change)]


def _names(call, change):
    for keyword in call.node.keywords:
        name = keyword.arg
        if (call.name, name) in _IGNORED:
            continue
        if name and name in change.before and name not in change.after:
            yield f"TF2 has no argument {name!r} (it has {', '.join(change.after)})"


def _positions(call, change):
    for position, argument in enumerate(call.node.args):
        if isinstance(argument, ast.Starred):
            return
        before = change.before[position] if position < len(change.before) else None
        after = change.after[position] if position < len(change.after) else None
        if before is None or before == after or (before, after) in _RENAMED:
            continue
        if (before, after, getattr(argument, "value", None)) in _SAME:
            continue
        if after is None:
            most = len(change.after)
            yield f"TF2 takes {most} argument{'s'[: most != 1]}, and no {before!r}"
        else:
            yield f"argument {position + 1} was {before!r}, and is {after!r} in TF2"
        return


# TensorFlow 2 takes these, and does without them.
_IGNORED = {
    ("tf.Variable", name)
    for name in ("collections", "expected_shape", "use_resource", "validate_shape")
}
# Another meaning, and the same result for this value.
_SAME = {("keep_prob", "rate", 0.5)}
# Another name, the same meaning.
_RENAMED = {
    ("tensor", "data"),
    ("values", "data"),
    ("tensor", "input"),
    ("filter", "filters"),
    ("inputs", "logits"),
    ("input_tensor", "input"),
    ("keep_dims", "keepdims"),
    ("kernel", "filters"),
    ("dim", "axis"),
    ("t", "input"),
    ("t", "x"),
    ("value", "input"),
    ("string_tensor", "input"),
    ("box_ind", "box_indices"),
    ("source", "input"),
    ("device_name_or_function", "device_name"),
    ("max_size", "max_output_size"),
}
