"""int64 features that reach the TPU."""

from estimator2strategy.tools.check import features
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S303",
    "int64-feature",
    Severity.INFO,
    title="An int64 feature that is handed to a TPU model as it was parsed",
    why="tf.train.Example has no int32. TPUs emulate int64 with pairs of int32: it is fed as 8 "
    "bytes, and computed slowly; older releases refused it in some ops.",
    fix="tf.cast(x, tf.int32) in input_fn, where the numbers are small enough.",
    guide="inputs.md",
    bad="""\
import tensorflow as tf

def parse(record):
    example = tf.io.parse_single_example(record, {"ids": tf.FixedLenFeature([128], tf.int64)})
    return example

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(parse)
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
    good="""\
import tensorflow as tf

def parse(record):
    example = tf.io.parse_single_example(record, {"ids": tf.FixedLenFeature([128], tf.int64)})
    return {"ids": tf.cast(example["ids"], tf.int32)}

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(parse)
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
)
def find(source, context):
    for feature in features.parsed_and_returned(source, context.project):
        if feature.dtype == "tf.int64":
            yield Hit(feature.node, f"the int64 {feature.key!r} is returned as it was parsed")
