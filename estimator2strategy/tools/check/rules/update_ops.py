"""Batch norm whose moving averages nothing updates."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

_RUNS_UPDATES = ("UPDATE_OPS", "optimize_loss", "create_train_op", "get_updates_for", ".updates")
_AROUND = (
    "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)): around minimize"
)
_TRAINING = "Give training=(mode == tf.estimator.ModeKeys.TRAIN), and put "


@rule(
    "E2S220",
    "no-update-ops",
    Severity.WARNING,
    title="Batch norm without UPDATE_OPS",
    why="tf.layers.batch_normalization puts the updates of its moving averages into a collection, "
    "and runs them itself no more than TF1 did. Training looks right; evaluation uses the "
    "initial averages.",
    fix=_AROUND,
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode):
    hidden = tf.layers.batch_normalization(features, training=mode == "train")
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode):
    hidden = tf.layers.batch_normalization(features, training=mode == "train")
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
""",
)
def find(source, context):
    project = context.project
    for model in project.model_functions:
        if model.source is not source or not any(s.argument("train_op") for s in model.specs):
            continue
        reached = project.reachable([model.definition])
        if any(word in d.source.text for d in reached for word in _RUNS_UPDATES):
            continue
        for call in project.calls_of(model.definition):
            if call.name == "tf.layers.batch_normalization" and call.value("training") is not False:
                never = "the moving averages of this batch norm are never updated"
                # Without `training`, it is False, and there is nothing to run.
                is_told = call.argument("training") is not None or call.is_open
                yield Hit(call.node, never, fix=None if is_told else _TRAINING + _AROUND)
