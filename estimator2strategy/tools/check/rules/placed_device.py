"""Devices named by the model."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S406",
    "placed-device",
    Severity.INFO,
    title="tf.device in model code",
    why="A replayed graph runs where its replica is: the devices that model_fn names are dropped, "
    "as they were on a TPU. A model that was split over GPUs by hand is not split here.",
    fix="Nothing, if it only put the model onto the GPU. Else use a tf.distribute strategy.",
    guide="unsupported.md",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    with tf.device("/gpu:1"):
        loss = tf.losses.mean_squared_error(labels, features)
    return tf.estimator.EstimatorSpec(mode, loss=loss)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, features)
    return tf.estimator.EstimatorSpec(mode, loss=loss)
""",
)
def find(source, context):
    project = context.project
    for model in project.model_functions:
        if model.source is not source:
            continue
        for call in project.calls_of(model.definition):
            device = (
                call.value("device_name_or_function", 0) if is_tf(call.name, "device") else None
            )
            if isinstance(device, str) and any(w in device.lower() for w in ("gpu", "tpu")):
                yield Hit(call.node, f"the placement on {device} is dropped")
