"""Methods and attributes that objects of TensorFlow 1.x had, and those of TensorFlow 2 have not."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import symbol_uses
from estimator2strategy.tools.reader.estimator_programs import all_of

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


def find(source, context):
    if not source.modules & {"tensorflow", "estimator2strategy"}:
        return
    severity = None if context.runs_on_tensorflow2(source) else Severity.INFO
    for node in all_of(source, ast.Attribute):
        if not hasattr(node, "parent"):
            continue  # names in an annotation are in no scope
        instead = _instead(node, source)
        if instead is not None:
            message = f"`{_short(node)}` is an AttributeError on TensorFlow 2"
            yield Hit(node, message, severity=severity, fix=f"On TensorFlow 2: {instead}.")


def _instead(node, source):
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
            name = made.name if made is not None else None
            if name and name.startswith(makers) and _is_class(made, source):
                return gone[node.attr]
    return None


def _is_class(made, source):
    """True if a call makes an object of a class of TensorFlow 2's own `tensorflow`."""
    raw = source.resolve(made.node.func, made.scope)
    return symbol_uses.flavour(raw) is symbol_uses.Flavour.PLAIN and made.last[:1].isupper()


def _is_dataset(node, scope, source, seen):
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
        values = where.bindings[node.id] if where else ()
        return bool(values) and all(
            isinstance(value, ast.expr) and _is_dataset(value, where, source, (*seen, node.id))
            for value in values
        )
    return False


_CHAINED = {
    "apply", "batch", "cache", "concatenate", "filter", "flat_map", "interleave", "map",
    "padded_batch", "prefetch", "repeat", "shard", "shuffle", "skip", "take", "window",
}  # fmt: skip


def _short(node):
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"...{text[-57:]}"
