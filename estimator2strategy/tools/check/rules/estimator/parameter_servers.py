"""Optimizers that gather gradients in queues."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf

_INSIDE = (
    "For cores and replicas use the optimizer inside of it: replicas in step take the same means."
)
# The first tokens come by the optimizer's hook, or by one of the program that does its work.
_FILLS = {"make_session_run_hook", "get_init_tokens_op"}


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
