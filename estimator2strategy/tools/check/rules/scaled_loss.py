"""A loss that is divided by the number of cores, and again by CrossShardOptimizer."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import names_in

_CORES = {"num_replicas", "num_shards", "num_cores", "num_tpu_cores", "number_of_shards"}


@rule(
    "E2S204",
    "loss-scaled-twice",
    Severity.WARNING,
    title="A loss divided by the number of cores, where CrossShardOptimizer does so too",
    why="CrossShardOptimizer makes the mean over the cores (its default reduction is MEAN): it "
    "divides each core's loss by their number. A loss that was divided before trains at an "
    "eighth of the rate.",
    fix="Return the mean over the core's own examples, undivided.",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    loss = loss / params["context"].num_replicas
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
""",
)
def find(source, context):
    for model in context.project.model_functions:
        if model.source is not source or not context.project.may_use_tpu(model):
            continue
        own = context.project.calls_of(model.definition)
        makers = [call for call in own if is_tf(call.name, "CrossShardOptimizer")]
        if not makers or any(call.argument("reduction", 1) is not None for call in makers):
            continue
        for node in ast.walk(model.node):
            divided = None
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                divided = node.left, node.right
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
                divided = node.target, node.value
            if divided is None or not isinstance(divided[0], ast.Name):
                continue
            if "loss" in divided[0].id.lower() and names_in(divided[1]) & _CORES:
                yield Hit(node, f"`{ast.unparse(node)}`: CrossShardOptimizer divides it again")
