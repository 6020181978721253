"""tf.compat.v1.layers beside Keras 3."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import symbol_uses


def find(source, context):
    for use in symbol_uses.uses(source, context.runs_on_tensorflow2(source)):
        if not use.needs_keras_2:
            continue
        on_tf2 = context.runs_on_tensorflow2(source, use.flavour)
        yield Hit(
            use.node,
            f"{use.name} of compat.v1 needs Keras 2",
            severity=Severity.ERROR if on_tf2 else Severity.INFO,
        )
