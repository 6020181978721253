"""A TPUEstimator whose model_fn returns EstimatorSpecs."""

from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator"):
            continue
        if call.value("use_tpu", 4) is False or call.value("eval_on_tpu") is False:
            continue
        function = context.project.function(call.argument("model_fn", 0), call.scope, source)
        for model in context.project.model_functions:
            if function is not None and model.node is function.node and not model.is_tpu:
                yield Hit(call.node, f"{model.node.name} returns an EstimatorSpec")
