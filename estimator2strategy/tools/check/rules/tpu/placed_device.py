"""Devices named by the model."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf


def find(source, context):
    project = context.project
    for model in project.model_functions:
        if model.source is not source:
            continue
        for call in project.calls_of(model.definition):
            device = (
                call.value("device_name_or_function", 0) if is_tf(call.name, "device") else None
            )
            if isinstance(device, str) and any(w in device.lower() for w in ("gpu", "tpu")):
                yield Hit(call.node, f"the placement on {device} is dropped")
