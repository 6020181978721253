"""Training on cores without a sum over them."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import is_optimizer_step

_SUMS = {"CrossShardOptimizer", "cross_replica_sum", "all_reduce", "CrossReplicaSum"}
_TRAINS = {"minimize", "apply_gradients", "optimize_loss"}


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
