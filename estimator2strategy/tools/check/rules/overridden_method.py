"""Subclasses that override what Estimator does not let them."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import Function

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


@rule(
    "E2S222",
    "overridden-method",
    Severity.ERROR,
    title="A subclass that overrides a public method of Estimator",
    why="Estimator refuses it when the object is made: ValueError 'Subclasses of Estimator cannot "
    "override members of Estimator.'",
    fix="Give the method another name, or wrap the estimator.",
    guide="unsupported.md",
    bad="""\
import tensorflow as tf

class Loud(tf.estimator.Estimator):
    def train(self, input_fn, **options):
        return super().train(input_fn, **options)
""",
    good="""\
import tensorflow as tf

class Loud(tf.estimator.Estimator):
    def loud_train(self, input_fn, **options):
        return self.train(input_fn, **options)
""",
)
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
