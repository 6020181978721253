"""A global step that stands still."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import HOST_INPUT
from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit, rule

_MODEL = """\
def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    grads = tf.train.GradientDescentOptimizer(0.1).compute_gradients(loss)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).apply_gradients(grads{step})
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@rule(
    "E2S612",
    "step-stands-still",
    Severity.ERROR,
    title="A train_op that does not change the global step",
    why="train counts by the global step: it never reaches max_steps, writes every checkpoint "
    "under the same number, and hooks see the same step for ever.",
    fix="Hand tf.train.get_global_step() to minimize or apply_gradients, or run "
    "tf.assign_add(global_step, 1) in train_op.",
    bad=HOST_INPUT + _MODEL.format(step=""),
    good=HOST_INPUT + _MODEL.format(step=", step"),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    if recorded.mode != Mode.TRAIN:
        return
    steps = {v.op.name for v in recorded.graph.get_collection("global_step")}
    if not steps & set(recorded.nodes.variables_written(recorded.root_ops)):
        yield Hit(recorded.train_op, "train_op does not change the global step")
