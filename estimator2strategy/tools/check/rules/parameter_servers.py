"""Optimizers that need the other workers of a cluster."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S223",
    "parameter-servers",
    Severity.WARNING,
    title="An optimizer that collects gradients on parameter servers",
    why="Its queues are a Session's. One process trains with them, as does a job with parameter "
    "servers in TF_CONFIG; cores and train_distribute refuse it.",
    fix="Start such a job, or train in step with the optimizer that it wraps, by itself or with "
    "RunConfig(train_distribute=tf.distribute.MultiWorkerMirroredStrategy()).",
    guide="cluster.md",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features, 1))
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.AdamOptimizer(0.1), replicas_to_aggregate=4)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
""",
    good="""\
import tensorflow as tf

optimizer = tf.train.AdamOptimizer(0.1)
config = tf.estimator.RunConfig(
    train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy())
""",
)
def find(source, context):
    for call in source.calls:
        if call.name == "tf.train.SyncReplicasOptimizer":
            # A program with Sessions of its own starts its own servers.
            own = any(is_tf(c.name, "Server", "MonitoredTrainingSession") for c in source.calls)
            for_estimator = context.project.has_estimator and not own
            severity = None if for_estimator else Severity.INFO
            message = f"{call.name} collects gradients on parameter servers"
            yield Hit(call.node, message, severity=severity)
