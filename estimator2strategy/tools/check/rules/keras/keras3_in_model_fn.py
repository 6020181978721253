"""Keras 3 layers in model_fn."""

from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    if "keras" not in source.modules:
        return
    for model in context.project.model_functions:
        if model.source is not source:
            continue
        for call in context.project.calls_of(model.definition):
            name = call.name or ""
            if name.startswith(("keras.layers.", "keras.optimizers.", "keras.models.")):
                yield Hit(call.node, f"{name} is Keras 3's")
