"""Summaries that a TPU drops."""

from estimator2strategy.tools.check.rule import Hit

_SUMMARIES = {"scalar", "histogram", "image", "audio", "text", "tensor_summary"}


def find(source, context):
    project = context.project
    for model in project.model_functions:
        # A host_call may well collect them.
        collects = any(spec.argument("host_call") for spec in model.specs)
        if collects or not project.may_use_tpu(model):
            continue
        reached = project.reached_calls([model.definition])
        for calls in (calls for d, calls in reached if d.source is source):
            for call in calls:
                if (call.name or "").startswith("tf.summary.") and call.last in _SUMMARIES:
                    yield Hit(call.node, f"{call.name} is dropped on a TPU")
