"""Subclasses that override what Estimator does not let them."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf
from estimator2strategy.tools.reader.source import Function

_OWN = {
    "train",
    "evaluate",
    "predict",
    "export_saved_model",
    "export_savedmodel",
    "get_variable_names",
    "get_variable_value",
    "latest_checkpoint",
    "eval_dir",
}
# TF 1.15 let a class of this name override them: such a program brings a copy of TensorFlow's own.
_A_COPY = "Import TPUEstimator from tf.contrib.tpu or tf.estimator.tpu in the place of this copy."


def find(source, context):
    if "_assert_members_are_not_overridden" in source.text:
        return  # it switches the refusal off
    for node, scope in source.classes:
        if not any(is_tf(source.name(base, scope.parent), "Estimator") for base in node.bases):
            continue
        if any(".learn." in (source.name(base, scope.parent) or "") for base in node.bases):
            continue
        for item in node.body:
            if isinstance(item, Function) and item.name in _OWN:
                fix = _A_COPY if node.name == "TPUEstimator" else None
                yield Hit(item, f"{node.name} overrides Estimator.{item.name}", fix=fix)
