"""PER_HOST_V2 with an input_fn that returns tensors."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import input_functions, returned
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import arguments_of


@rule(
    "E2S308",
    "iterator-in-input-fn",
    Severity.INFO,
    title="An input_fn of a TPUEstimator that returns the tensors of an iterator",
    why="PER_HOST_V2, the usual input pipeline, takes only a Dataset: TypeError '`input_fn` must "
    "return a `Dataset`'. The other pipelines take tensors, and then predict cannot fill up "
    "the last batch.",
    fix="Return the dataset itself.",
    guide="inputs.md",
    bad="""\
import tensorflow as tf

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").batch(params["batch_size"], True)
    return data.make_one_shot_iterator().get_next()

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
    good="""\
import tensorflow as tf

def input_fn(params):
    return tf.data.TFRecordDataset("train.tfrecord").batch(params["batch_size"], True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
)
def find(source, context):
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(definition.node):
            continue
        for value in returned(definition.node):
            made = source.call(value, definition.scope)
            if made is not None and made.last == "get_next" and isinstance(value, ast.expr):
                yield Hit(value, f"{definition.node.name} returns tensors, not a Dataset")
