"""Imports from TensorFlow's inside."""

from estimator2strategy.tools.check import symbol_uses, unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S104",
    "private-import",
    Severity.WARNING,
    title="An import from `tensorflow.python`, which any release may move",
    why="Such a module has no promise. What TensorFlow moved since 1.15 and programs use, this "
    "package finds for them; on TensorFlow itself the import fails where it was moved.",
    fix="Use the public name; where there is none, copy what you use.",
    target="tf2",
    bad="from tensorflow.python.ops import array_ops\n",
    good="from tensorflow.compat.v1 import placeholder\n",
)
def find(source, context):
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if use.is_import and use.name.startswith("tf.python.") and use.in_tensorflow is not False:
            if use.name.startswith("tf.python.keras"):
                continue  # E2S507
            if unreached.is_expendable(use.node):
                continue
            on_tf2 = context.runs_on_tensorflow2(source, use.flavour)
            yield Hit(
                use.node,
                f"{use.name.replace('tf.', 'tensorflow.', 1)} is private to TensorFlow",
                severity=Severity.WARNING if on_tf2 else Severity.INFO,
            )
