"""Keras optimizers used like those of tf.train."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S504",
    "keras-optimizer-step",
    Severity.ERROR,
    title="A Keras optimizer given global_step",
    why="Optimizers of tf.keras count steps of their own, and take no global_step: TypeError.",
    fix="Use an optimizer of tf.train; or tf.keras' with optimizer.iterations set to the global "
    "step.",
    bad="""\
import tensorflow as tf

optimizer = tf.keras.optimizers.Adam(0.1)
train_op = optimizer.apply_gradients([], global_step=tf.train.get_global_step())
""",
    good="""\
import tensorflow as tf

optimizer = tf.train.AdamOptimizer(0.1)
train_op = optimizer.apply_gradients([], global_step=tf.train.get_global_step())
""",
)
def find(source, context):
    for call in source.calls:
        if call.last not in ("minimize", "apply_gradients") or call.argument("global_step") is None:
            continue
        made = source.call(getattr(call.node.func, "value", None), call.scope)
        if made is not None and (made.name or "").startswith(
            ("tf.keras.optimizers.", "tf.optimizers.", "keras.optimizers.", "tf_keras.optimizers.")
        ):
            yield Hit(call.node, f"{made.name} takes no global_step")
