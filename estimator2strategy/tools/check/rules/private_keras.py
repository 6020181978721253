"""The copy of Keras inside TensorFlow."""

from estimator2strategy.tools.check import unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S507",
    "private-keras",
    Severity.WARNING,
    title="An import of `tensorflow.python.keras`",
    why="It is an old copy of Keras that TensorFlow keeps for itself; its classes are neither "
    "tf.keras' nor tf_keras', so that mixing them fails in isinstance checks. In a program "
    "that is run by this package it is tf-keras, and the finding is a note.",
    fix="Import from tf.keras; where it has no such name, copy what you use.",
    target="tf2",
    bad="from tensorflow.python.keras import layers\n",
    good="from tensorflow.keras import layers\n",
)
def find(source, context):
    for target, _ in source.imports:
        module = f"{target.module}.{target.name or ''}"
        if not target.level and module.startswith("tensorflow.python.keras"):
            if unreached.is_expendable(target.node):
                continue
            on_tf2 = context.runs_on_tensorflow2(source)
            yield Hit(
                target.node,
                "tensorflow.python.keras is a private copy of Keras",
                severity=Severity.WARNING if on_tf2 else Severity.INFO,
            )
