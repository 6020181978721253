"""Optimizers that gather gradients in queues."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule

_INSIDE = (
    "For cores and replicas use the optimizer inside of it: replicas in step take the same means."
)
# The first tokens come by the optimizer's hook, or by one of the program that does its work.
_FILLS = {"make_session_run_hook", "get_init_tokens_op"}


@rule(
    "E2S223",
    "parameter-servers",
    Severity.WARNING,
    title="An optimizer that gathers gradients in queues",
    why="One process trains with it, in a Session, and so does a job with parameter servers in "
    "TF_CONFIG. Without the hook that puts the first tokens into its queue, its steps would wait "
    "for ever: then it is refused. Cores, train_distribute and jit_compile refuse it, too.",
    fix="Give the training its hook: "
    f"training_hooks=[optimizer.make_session_run_hook(is_chief=True)]. {_INSIDE}",
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
        if call.name != "tf.train.SyncReplicasOptimizer":
            continue
        # A program with Sessions of its own starts its own servers.
        own = any(is_tf(c.name, "Server", "MonitoredTrainingSession") for c in source.calls)
        project = context.project
        if source not in project.estimator_sources or own:
            message = f"{call.name} gathers gradients in queues"
            yield Hit(call.node, message, Severity.INFO, _INSIDE)
        elif not any(c.last in _FILLS for other in project.sources for c in other.calls):
            message = f"{call.name} has no hook: its steps would wait for ever, so it is refused"
            yield Hit(call.node, message)
        elif any(
            _asks_for_replicas(c) for other in project.imports.together(source) for c in other.calls
        ):
            message = f"{call.name} is refused with train_distribute and jit_compile"
            yield Hit(call.node, message, fix=_INSIDE)
        else:
            message = f"{call.name} trains in one process, or with parameter servers in TF_CONFIG"
            yield Hit(call.node, message, Severity.INFO, _INSIDE)


def _asks_for_replicas(call):
    """True if a call asks for replicas, or for compiled steps."""
    given = {
        k.arg for k in call.node.keywords if getattr(k.value, "value", "?") not in (None, False)
    }
    return "train_distribute" in given or (
        call.last == "TrainingOptions" and "jit_compile" in given
    )
