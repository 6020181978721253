"""padded_batch to the longest example, on TPUs."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import input_functions
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import arguments_of


@rule(
    "E2S305",
    "padded-to-longest",
    Severity.WARNING,
    title="padded_batch that pads to the longest example, for a TPU",
    why="None or -1 in padded_shapes gives each batch a length of its own. TPUs compile for one "
    "shape: 'features... must have static shape'.",
    fix="Give the longest length that occurs, and filter out what is longer.",
    guide="inputs.md",
    bad="""\
import tensorflow as tf

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(tf.io.decode_raw)
    return data.padded_batch(params["batch_size"], padded_shapes=[None], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
    good="""\
import tensorflow as tf

def input_fn(params):
    data = tf.data.TFRecordDataset("train.tfrecord").map(tf.io.decode_raw)
    return data.padded_batch(params["batch_size"], padded_shapes=[128], drop_remainder=True)

estimator = tf.estimator.tpu.TPUEstimator(model_fn=None, config=None, train_batch_size=128)
""",
)
def find(source, context):
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(definition.node):
            continue
        for call in context.project.calls_of(definition):
            shapes = call.argument("padded_shapes", 1)
            if call.last != "padded_batch" or shapes is None:
                continue
            found = source.assigned(shapes, call.scope)
            if _is_open(found[0] if found else shapes):
                yield Hit(call.node, "padded to the longest example of each batch")


def _is_open(shapes):
    for node in ast.walk(shapes):
        if isinstance(node, (ast.List, ast.Tuple)):
            for item in node.elts:
                if isinstance(item, ast.Constant) and item.value is None:
                    return True
                if isinstance(item, ast.UnaryOp) and ast.unparse(item) == "-1":
                    return True
    return False
