"""A train op that does not count the global step."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import is_optimizer_step
from estimator2strategy.tools.check.rule import Hit, rule

_COUNTS = ("assign_add", "global_step + 1", "global_step+1", "optimize_loss", "create_train_op")


@rule(
    "E2S219",
    "step-never-counts",
    Severity.ERROR,
    title="A train op of model_fn that does not increment the global step",
    why="The global step stays 0: training to max_steps never ends, checkpoints overwrite one "
    "another, and a decaying learning rate never decays.",
    fix="Give global_step=tf.train.get_global_step() to minimize or apply_gradients.",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
""",
)
def find(source, context):
    project = context.project
    for model in project.model_functions:
        if model.source is not source:
            continue
        updates = [
            call
            for call in project.calls_of(model.definition)
            if call.last in ("minimize", "apply_gradients")
            and is_optimizer_step(call, of_project=False)
        ]
        if not updates or any(word in source.text for word in _COUNTS):
            continue
        if all(_counts_nothing(call) for call in updates):
            for call in updates:
                yield Hit(call.node, f".{call.last}() without global_step: the step stays 0")


def _counts_nothing(call):
    given = call.argument("global_step", 1)
    if call.is_open:
        return False
    return given is None or call.source.constant(given, call.scope) is None
