"""Sparse features that reach the TPU."""

from estimator2strategy.tools.check import features
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S304",
    "sparse-feature",
    Severity.WARNING,
    title="A VarLenFeature that is handed to a TPU model as it was parsed",
    why="It is a SparseTensor, whose size depends on the example; the infeed takes dense tensors "
    "of one shape.",
    fix="FixedLenFeature, or tf.sparse.to_dense and pad to a fixed length.",
    guide="inputs.md",
    bad="""\
import tensorflow as tf

def parse(record):
    example = tf.io.parse_single_example(record, {"ids": tf.VarLenFeature(tf.float32)})
    return example

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(parse)
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
    good="""\
import tensorflow as tf

def parse(record):
    example = tf.io.parse_single_example(record, {"ids": tf.FixedLenFeature([8], tf.float32)})
    return example

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(parse)
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
)
def find(source, context):
    for feature in features.parsed_and_returned(source, context.project):
        if feature.kind == "VarLenFeature":
            yield Hit(feature.node, f"the sparse {feature.key!r} is returned as it was parsed")
