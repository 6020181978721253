"""Python functions in model code for TPUs."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S401",
    "python-in-tpu-code",
    Severity.ERROR,
    title="A Python function in the part of model_fn that the TPU executes",
    why="A TPU cannot call Python: 'No registered PyFunc OpKernel for XLA_TPU'.",
    fix="Write it with ops of TensorFlow, move it to input_fn, or wrap it in "
    "tf.tpu.outside_compilation.",
    bad="""\
import numpy as np
import tensorflow as tf

def model_fn(features, labels, mode, params):
    smooth = tf.py_func(np.sort, [features], tf.float32)
    loss = tf.losses.mean_squared_error(labels, smooth)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.sort(features))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
""",
)
def find(source, context):
    for call in context.project.tpu_code.get(source, ()):
        if is_tf(call.name, "py_func", "py_function", "numpy_function"):
            yield Hit(call.node, f"{call.name} is called where the TPU computes")
