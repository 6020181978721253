"""Hooks of a TPU model that fetch what only the TPU computes."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule

_HOOKS = ("LoggingTensorHook", "SummarySaverHook", "FinalOpsHook", "NanTensorHook", "FeedFnHook")


@rule(
    "E2S208",
    "hook-with-tpu-tensors",
    Severity.WARNING,
    title="A hook in a model_fn for TPUs that fetches the model's tensors",
    why="A hook runs on the host, and the tensors of the model are on the cores, inside of a loop "
    "of many steps. On a TPU such a hook fails ('... is not fetchable' or 'captures "
    "tensors'). This package shows it the last step of each execution, on emulated cores.",
    fix="Send the tensors to the host with host_call, or log the loss with tf.estimator's own "
    "line.",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    hook = tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=10)
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, training_hooks=[hook])
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
        given = {
            node.id
            for spec in model.specs
            if spec.last == "TPUEstimatorSpec"
            for keyword in spec.node.keywords
            if keyword.arg in ("training_hooks", "evaluation_hooks")
            for node in ast.walk(keyword.value)
            if isinstance(node, ast.Name)
        }
        for call in context.project.device_calls(model.definition):
            if is_tf(call.name, *_HOOKS) and _is_given(call, given):
                yield Hit(call.node, f"{call.last} fetches tensors that the cores compute")


def _is_given(call, names):
    node = call.node
    while not isinstance(node, ast.stmt):
        node = node.parent
        if isinstance(node, ast.keyword) and node.arg in ("training_hooks", "evaluation_hooks"):
            return True
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(t, ast.Name) and t.id in names for t in targets)
