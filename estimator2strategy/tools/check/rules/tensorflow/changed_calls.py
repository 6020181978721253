"""Calls and attributes that TensorFlow 2, or TensorFlow 1.0, has changed."""

import ast
from collections.abc import Iterator

from estimator2strategy.engine.names import rows, tables
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.lost_names import unguarded
from estimator2strategy.tools.reader import symbol_uses, unreached
from estimator2strategy.tools.reader.source import Call, LexicalScope, Source, parents


def changed_arguments(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        name = call.name or ""
        change = tables.changed(name) if name.startswith("tf.") else None
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


def _of_keras(call: Call) -> Iterator[str]:
    """The arguments that Keras 3 has not, which is the `tf.keras` of TensorFlow 2.16 and newer."""
    name = call.name or ""
    gone = _KERAS.get(name, {})
    if name.startswith("tf.keras.optimizers."):
        gone = {"lr": "it is learning_rate"}
    if name.startswith(("tf.keras.layers.", "tf.keras.optimizers.")):
        kept = {*gone, "batch_size", "input_dtype"}
        dropped = rows.refused(name.removeprefix("tf.")) - kept
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


def differences(call: Call, change: rows.Row) -> list[str]:
    """The arguments of a TF1 call that TF2 refuses, or takes for something else."""
    return [*_names(call, change), *_positions(call, change)]


def _names(call: Call, change: rows.Row) -> Iterator[str]:
    for keyword in call.node.keywords:
        name = keyword.arg
        if (call.name, name) in _IGNORED:
            continue
        if name and name in change.before and name not in change.after:
            yield f"TF2 has no argument {name!r} (it has {', '.join(change.after)})"


def _positions(call: Call, change: rows.Row) -> Iterator[str]:
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


# Function -> its arguments by the names that they had, and have since TensorFlow 1.0.
_RENAMED_IN_1_0 = {
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


def older_arguments(source: Source, context: Context) -> Iterator[Hit]:
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


_KNOWN = {*_RENAMED_IN_1_0, *_DIMENSION_FIRST, *_CROSS_ENTROPIES}


def _takes_by_name(source: Source, context: Context, flavour: symbol_uses.Flavour) -> bool:
    """True if cross entropies are those of TF 1.15, which take no argument by position."""
    if flavour is symbol_uses.Flavour.V2 or context.runs_on_tensorflow2(source, flavour):
        return False
    return flavour is not symbol_uses.Flavour.PLAIN or symbol_uses.is_legacy(source)


def _problem(call: Call, by_name: bool) -> tuple[str, str] | None:
    """(what is wrong with the arguments of a call, what to write); None if nothing is."""
    given = call.node.args
    for keyword in call.node.keywords:
        now = _RENAMED_IN_1_0.get(call.name or "", {}).get(keyword.arg or "")
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


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


# Only a Dataset has these, wherever it comes from.
_DATASET = {
    "make_one_shot_iterator": "iter(dataset), or a for loop over it",
    "make_initializable_iterator": "iter(dataset), or a for loop over it",
    "map_with_legacy_function": "dataset.map",
    "filter_with_legacy_function": "dataset.filter",
}
_OF_DATASETS = {
    "output_shapes": "tf.nest.map_structure(lambda spec: spec.shape, dataset.element_spec)",
    "output_types": "tf.nest.map_structure(lambda spec: spec.dtype, dataset.element_spec)",
    "output_classes": "dataset.element_spec",
}
_OF_LAYERS = {
    "apply": "call the layer: layer(x)",
    "add_update": "variable.assign in `call`",
    "get_losses_for": "layer.losses",
    "get_updates_for": "nothing: layers assign their updates as they run",
    "updates": "nothing: layers assign their updates as they run",
}
_OF_MODELS = {
    **_OF_LAYERS,
    "evaluate_generator": "model.evaluate",
    "fit_generator": "model.fit",
    "predict_classes": "model.predict, and argmax of it",
    "predict_generator": "model.predict",
    "predict_proba": "model.predict",
}
_OF_TABLES = dict.fromkeys(("init", "initializer"), "nothing: a table is filled when it is made")
_OF_FLAGS = {"_parse_flags": "tf.compat.v1.flags.FLAGS(sys.argv, known_only=True)"}
# The maker of an object -> its attributes that are gone, and what has their place.
_BY_MAKER = (
    (("tf.keras.Sequential", "tf.keras.Model", "tf.keras.models."), _OF_MODELS),
    (("tf.keras.layers.", "tf.layers."), _OF_LAYERS),
    (("tf.lookup.StaticHashTable", "tf.lookup.StaticVocabularyTable"), _OF_TABLES),
)


def removed_attribute(source: Source, context: Context) -> Iterator[Hit]:
    if not source.modules & {"tensorflow", "estimator2strategy"}:
        return
    severity = None if context.runs_on_tensorflow2(source) else Severity.INFO
    for node in source.all_of(ast.Attribute):
        if not hasattr(node, "parent"):
            continue  # names in an annotation are in no scope
        instead = _instead(node, source)
        if instead is not None:
            message = f"`{_short(node)}` is an AttributeError on TensorFlow 2"
            yield Hit(node, message, severity=severity, fix=f"On TensorFlow 2: {instead}.")


def _instead(node: ast.Attribute, source: Source) -> str | None:
    """The successor of `object.name`; None if the object may well have it."""
    scope = source.scope_of(node)
    if node.attr in _DATASET and isinstance(getattr(node, "parent", None), ast.Call):
        # `tf.data.make_one_shot_iterator` is a name, and compat.v1's datasets have the method.
        raw = source.resolve(node, scope) or "builtins."
        named = not raw.startswith("builtins.")
        return None if named or "compat.v1" in source.text else _DATASET[node.attr]
    if node.attr in _OF_DATASETS and _is_dataset(node.value, scope, source, ()):
        return _OF_DATASETS[node.attr]
    if node.attr in _OF_FLAGS and "FLAGS" in (source.resolve(node.value, scope) or ""):
        return _OF_FLAGS[node.attr]
    for makers, gone in _BY_MAKER:
        if node.attr in gone:
            made = source.call(node.value, scope)
            is_of = made is not None and (made.name or "").startswith(makers)
            if made is not None and is_of and _is_class(made, source):
                return gone[node.attr]
    return None


def _is_class(made: Call, source: Source) -> bool:
    """True if a call makes an object of a class of TensorFlow 2's own `tensorflow`."""
    raw = source.resolve(made.node.func, made.scope)
    return symbol_uses.flavour(raw) is symbol_uses.Flavour.PLAIN and made.last[:1].isupper()


def _is_dataset(node: ast.expr, scope: LexicalScope, source: Source, seen: tuple[str, ...]) -> bool:
    """True if an expression is a chain of methods on a Dataset of `tf.data`, for certain."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        raw = source.resolve(node.func, scope)
        name = source.canonical(raw) if raw is not None else ""
        if name.startswith("tf.data."):
            makes = name.endswith("Dataset") or ".Dataset." in name
            return makes and symbol_uses.flavour(raw) is symbol_uses.Flavour.PLAIN
        return node.func.attr in _CHAINED and _is_dataset(node.func.value, scope, source, seen)
    if isinstance(node, ast.Name):
        if node.id in seen:
            return True
        where = scope.find(node.id)
        values = where.bindings[node.id] if where else []
        return where is not None and all(
            isinstance(value, ast.expr) and _is_dataset(value, where, source, (*seen, node.id))
            for value in values
        )
    return False


_CHAINED = {
    "apply", "batch", "cache", "concatenate", "filter", "flat_map", "interleave", "map",
    "padded_batch", "prefetch", "repeat", "shard", "shuffle", "skip", "take", "window",
}  # fmt: skip


def _short(node: ast.Attribute) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"...{text[-57:]}"


def dimension_value(source: Source, context: Context) -> Iterator[Hit]:
    for node in (*reads(source), *_reads_by_name(source)):
        on_tf2 = context.runs_on_tensorflow2(source)
        yield Hit(
            node,
            f"`{ast.unparse(node)}` is an AttributeError on TF2",
            severity=Severity.ERROR if on_tf2 else Severity.INFO,
        )


def reads(source: Source) -> Iterator[ast.Attribute]:
    """Each `shape[i].value` of a file that knows TensorFlow."""
    for node in _values(source):
        item = node.value
        if isinstance(item, ast.Subscript) and _is_shape(item.value) and _is_index(item.slice):
            yield node


def _reads_by_name(source: Source) -> Iterator[ast.Attribute]:
    """Each `.value` of a name that stands for a dimension: `n = x.shape[0]`, `for n in x.shape`."""
    for node in _values(source):
        item = node.value
        scope = source.scope_of(node)
        if isinstance(item, ast.Name):
            shape = _looped_over(item) or _dimension_of(item, scope, source)
        elif isinstance(item, ast.Subscript) and isinstance(item.value, ast.Name):
            found = source.assigned(item.value, scope)
            shape = found[0] if found and _is_index(item.slice) else None
        else:
            continue
        if shape is not None and _is_shape(shape):
            yield node


def _values(source: Source) -> Iterator[ast.Attribute]:
    if ".value" not in source.text or not ("tensorflow" in source.text or "tf1" in source.text):
        return
    for node in source.all_of(ast.Attribute):
        if node.attr == "value" and hasattr(node, "parent"):
            yield node


def _dimension_of(name: ast.Name, scope: LexicalScope, source: Source) -> ast.expr | None:
    """The shape of `name = shape[0]`."""
    found = source.assigned(name, scope)
    if found is None or not isinstance(found[0], ast.Subscript) or not _is_index(found[0].slice):
        return None
    shape = found[0].value
    behind = source.assigned(shape, found[1])
    return behind[0] if behind else shape


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _looped_over(name: ast.Name) -> ast.expr | None:
    """The iterable from which a comprehension around a name takes it."""
    for outer in parents(name):
        for loop in outer.generators if isinstance(outer, _COMPREHENSIONS) else ():
            if isinstance(loop.target, ast.Name) and loop.target.id == name.id:
                return loop.iter
    return None


def _is_shape(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "shape"
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Attribute) and node.func.attr == "get_shape"
    )


def _is_index(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, (ast.Constant, ast.Name))


_METHODS = {
    "experimental_run_v2": "run",
    "experimental_local_results_v2": "experimental_local_results",
    "experimental_make_numpy_dataset": "tf.data.Dataset.from_tensor_slices",
    "call_for_each_replica": "run",
}


def removed_strategy_method(source: Source, context: Context) -> Iterator[Hit]:
    for call in source.calls:
        function = call.node.func
        if call.last not in _METHODS or not isinstance(function, ast.Attribute):
            continue
        owner = ast.unparse(function.value).lower()
        if "strategy" in owner and "tf." not in owner and ".extended" not in owner:
            instead = _METHODS[call.last]
            yield Hit(call.node, f".{call.last}() is gone", fix=f"Use {instead}.")
