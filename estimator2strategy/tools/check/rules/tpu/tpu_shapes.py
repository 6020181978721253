"""Shapes that are not known before a step runs."""

from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    # As one core sees them such features are refused before model_fn is called.
    if recorded.on_cores or not subject.model.for_tpu:
        return
    for name, tensor in recorded.fed_by_name.items():
        if not tensor.shape.is_fully_defined():
            yield Hit(
                subject.inputs[recorded.mode],
                f"{recorded.mode}: input_fn gives {name} the shape {tensor.shape}",
            )
