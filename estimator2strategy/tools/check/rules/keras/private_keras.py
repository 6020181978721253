"""The copy of Keras inside TensorFlow."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached


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
