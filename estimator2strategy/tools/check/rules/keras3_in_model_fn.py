"""Keras 3 layers in model_fn."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S503",
    "keras3-in-model-fn",
    Severity.WARNING,
    title="Layers or optimizers of the package `keras` in a model_fn",
    why="Since TensorFlow 2.16 `keras` is Keras 3, which makes no TF1 variables: they are in no "
    "collection, so the optimizer and the Saver do not see them, and a checkpoint lacks them.",
    fix="Use tf.keras of the facade, or tf_keras: those are Keras 2.",
    guide="README.md",
    bad="""\
import keras
import tensorflow as tf

def model_fn(features, labels, mode):
    predictions = keras.layers.Dense(1)(features)
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.losses.mean_squared_error(labels, predictions))
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode):
    predictions = tf.keras.layers.Dense(1)(features)
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.losses.mean_squared_error(labels, predictions))
""",
)
def find(source, context):
    if "keras" not in source.modules:
        return
    for model in context.project.model_functions:
        if model.source is not source:
            continue
        for call in context.project.calls_of(model.definition):
            name = call.name or ""
            if name.startswith(("keras.layers.", "keras.optimizers.", "keras.models.")):
                yield Hit(call.node, f"{name} is Keras 3's")
