"""Training on cores without a sum over them."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import is_optimizer_step
from estimator2strategy.tools.check.rule import Hit, rule

_SUMS = {"CrossShardOptimizer", "cross_replica_sum", "all_reduce", "CrossReplicaSum"}
_TRAINS = {"minimize", "apply_gradients", "optimize_loss"}


@rule(
    "E2S203",
    "no-cross-shard-optimizer",
    Severity.ERROR,
    title="A model_fn for TPUs whose optimizer does not sum over the cores",
    why="Each core would apply its own gradients to its own copy of the weights, and the copies "
    "would drift apart. TPUEstimator refuses it: ValueError about 'model training on TPUs'.",
    fix="optimizer = tf.tpu.CrossShardOptimizer(optimizer)",
    guide="unsupported.md",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    optimizer = tf.train.AdamOptimizer(0.1)
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
    project = context.project
    for model in project.model_functions:
        if not project.may_use_tpu(model) or _chooses(model):
            continue
        reached = project.reached_calls([model.definition])
        if any(name in d.source.text for d, _ in reached for name in _SUMS):
            continue
        for calls in (calls for d, calls in reached if d.source is source):
            for call in calls:
                if call.last in _TRAINS and is_optimizer_step(call, of_project=True):
                    yield Hit(call.node, "trains on TPU cores without a sum over the cores")


def _chooses(model):
    """True if a spec gets a `use_tpu`: the model may then be for a TPU or not."""
    return any("use_tpu" in (k.arg or "") for spec in model.specs for k in spec.node.keywords)
