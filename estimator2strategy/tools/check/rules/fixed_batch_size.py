"""input_fn of a TPUEstimator that makes batches of a size of its own."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import input_functions
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import arguments_of, names_in


@rule(
    "E2S201",
    "fixed-batch-size",
    Severity.WARNING,
    title="An input_fn of a TPUEstimator that does not use params['batch_size']",
    why="TPUEstimator calls input_fn once per core or per host, and says in params['batch_size'] "
    "how large the batch is to be there. With PER_HOST_V2 a size of its own gives each core a "
    "whole batch: eight times the examples per step, at the same learning rate. In the other "
    "pipelines it is as wrong where it differs from train_batch_size, or with several hosts.",
    fix="Make batches of params['batch_size'].",
    guide="README.md",
    bad="""\
import tensorflow as tf

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").repeat()
    return data.batch(128, drop_remainder=True)

config = tf.estimator.tpu.TPUConfig(
    per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2)
""",
    good="""\
import tensorflow as tf

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").repeat()
    return data.batch(params["batch_size"], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
)
def find(source, context):
    if source not in context.project.tpu_sources:
        return
    sizes = {
        ast.unparse(size)
        for call in source.calls
        if (size := call.argument("train_batch_size")) is not None
    }
    per_host = "PER_HOST_V2" not in source.text and "PER_SHARD" not in source.text
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(definition.node):
            continue
        text = ast.unparse(definition.node)
        if "batch_size']" in text or "batch_size" in text.partition("params.")[2]:
            continue
        for call in context.project.calls_of(definition):
            size = call.argument("batch_size", 0)
            if size is not None and per_host and ast.unparse(size) in sizes:
                continue
            if call.last == "batch" and size is not None and _is_fixed(size, call):
                yield Hit(
                    call.node,
                    f"batches of {ast.unparse(size)}, whatever params['batch_size'] says",
                )


def _is_fixed(size, call):
    value = call.source.constant(size, call.scope)
    if isinstance(value, int) and value > 1:
        return True
    return isinstance(size, ast.Attribute) and names_in(size) & {"FLAGS", "flags"} != set()
