"""tf.compat.v1.layers beside Keras 3."""

from estimator2strategy.tools.check import symbol_uses
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S505",
    "layers-need-keras2",
    Severity.ERROR,
    title="tf.compat.v1.layers or nn.rnn_cell, which are not there beside Keras 3",
    why="They were moved to Keras 2. On TensorFlow 2.16 and newer: AttributeError '`...` is not "
    "available with Keras 3'. In a program that is run by this package they work, and the "
    "finding is a note.",
    fix="Take them from estimator2strategy.tf1; or install tf-keras and set "
    "TF_USE_LEGACY_KERAS=1, for the whole process.",
    target="tf2",
    bad="import tensorflow.compat.v1 as tf\n\ny = tf.layers.dense(tf.ones([2, 3]), 1)\n",
    good="import estimator2strategy.tf1 as tf\n\ny = tf.layers.dense(tf.ones([2, 3]), 1)\n",
)
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
