"""Moving averages that stay as they are."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import HOST_INPUT
from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit, rule

_MODEL = """\
def model_fn(features, labels, mode):
    hidden = tf.layers.batch_normalization(features["x"], training=mode == "train")
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
{train_op}    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
_BAD = """\
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
"""
_GOOD = """\
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
"""


@rule(
    "E2S609",
    "dead-update-op",
    Severity.WARNING,
    title="An op of UPDATE_OPS that no step runs",
    why="Batch norm puts the updates of its moving averages into that collection, and nothing runs "
    "them by itself. Training looks right; evaluation and prediction use the initial averages.",
    fix="with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)): around minimize",
    bad=HOST_INPUT + _MODEL.format(train_op=_BAD),
    good=HOST_INPUT + _MODEL.format(train_op=_GOOD),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    if recorded.mode != Mode.TRAIN:
        return
    for update in dict.fromkeys(recorded.graph.get_collection("update_ops")):
        op = getattr(update, "op", update)
        if op.name not in recorded.step_ops:
            yield Hit(op, f"no step runs the update {op.name!r}")
