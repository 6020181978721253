"""String features that reach the TPU."""

from estimator2strategy.tools.check import features
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S302",
    "string-feature",
    Severity.WARNING,
    title="A string feature that is handed to a TPU model as it was parsed",
    why="TPUs have no strings: the infeed refuses them. A key that is only carried along for the "
    "output file fails as well.",
    fix="Leave it out of what input_fn returns, or turn it into a number there.",
    guide="inputs.md",
    bad="""\
import tensorflow as tf

def parse(record):
    example = tf.io.parse_single_example(record, {
        "key": tf.FixedLenFeature([], tf.string), "x": tf.FixedLenFeature([3], tf.float32)})
    return example

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(parse)
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
    good="""\
import tensorflow as tf

def parse(record):
    example = tf.io.parse_single_example(record, {
        "key": tf.FixedLenFeature([], tf.string), "x": tf.FixedLenFeature([3], tf.float32)})
    return {"x": example["x"]}

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(parse)
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
)
def find(source, context):
    for feature in features.parsed_and_returned(source, context.project):
        if feature.dtype == "tf.string":
            yield Hit(feature.node, f"the string {feature.key!r} is returned as it was parsed")
