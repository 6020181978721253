"""Shapes that are not known before a step runs."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import TPU_TRAIN_OP
from estimator2strategy.tools.check.rule import Hit, rule

_PROGRAM = """\
import tensorflow as tf

def input_fn(params):
    lengths = tf.data.Dataset.from_tensor_slices({lengths}).repeat()
    dataset = lengths.map(lambda n: ({{"x": {x}}}, tf.ones([1])))
    return dataset.batch(params["batch_size"], drop_remainder=True)

def model_fn(features, labels, mode, params):
    summed = tf.reduce_sum(features["x"], axis=1, keepdims=True)
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(summed, 1))
"""


@rule(
    "E2S604",
    "no-static-shape",
    Severity.ERROR,
    title="Features or labels for a TPU whose shape is not known before a step runs",
    why="A TPU's program is compiled for one shape of each tensor. TPUEstimator refuses features "
    "and labels with an unknown dimension before the first step.",
    fix="Batch with drop_remainder=True, pad to a fixed length (padded_batch with padded_shapes), "
    "and name the shape of what a parser or py_func returns with set_shape.",
    bad=_PROGRAM.format(lengths="[3, 3]", x="tf.ones([n])") + TPU_TRAIN_OP,
    good=_PROGRAM.format(lengths="[3, 3]", x="tf.ones([3])") + TPU_TRAIN_OP,
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    # As one core sees them such features are refused before model_fn is called.
    if recorded.on_cores or not subject.model.for_tpu:
        return
    for name, tensor in recorded.fed_by_name.items():
        if not tensor.shape.is_fully_defined():
            yield Hit(
                subject.inputs[recorded.mode],
                f"{recorded.mode}: input_fn gives {name} the shape {tensor.shape}",
            )
