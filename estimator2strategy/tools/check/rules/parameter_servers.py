"""Clusters that are driven by Sessions."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule

_SERVERS = {
    "tf.train.Server": "a server of Sessions",
    "tf.train.replica_device_setter": "variables on parameter servers",
    "tf.train.SyncReplicasOptimizer": "gradients collected by parameter servers",
}


@rule(
    "E2S223",
    "parameter-servers",
    Severity.WARNING,
    title="Parameter servers",
    why="They are Sessions that hold variables for other Sessions; replayed programs have none.",
    fix="One process with all its devices: use_tpu=True, or "
    "RunConfig(train_distribute=tf.distribute.MirroredStrategy()).",
    guide="unsupported.md",
    bad="""\
import tensorflow as tf

optimizer = tf.train.SyncReplicasOptimizer(
    tf.train.AdamOptimizer(0.1), replicas_to_aggregate=4)
""",
    good="""\
import tensorflow as tf

config = tf.estimator.RunConfig(train_distribute=tf.distribute.MirroredStrategy())
""",
)
def find(source, context):
    for call in source.calls:
        if call.name in _SERVERS:
            yield Hit(call.node, f"{call.name} means {_SERVERS[call.name]}")
        elif is_tf(call.name, "ParameterServerStrategy"):
            yield Hit(call.node, "a ParameterServerStrategy means parameter servers")
