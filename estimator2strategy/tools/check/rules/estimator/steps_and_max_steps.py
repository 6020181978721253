"""Numbers of steps that are refused."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import runs


def find(source, context):
    for call, made in runs(source):
        values = {"steps": call.value("steps", 2 if call.last == "train" else 1)}
        if call.last == "predict":
            continue
        if call.last == "train":
            values["max_steps"] = call.value("max_steps", 3)
            if all(isinstance(value, int) for value in values.values()):
                yield Hit(call.node, "train takes steps or max_steps, not both")
        for name, value in values.items():
            if isinstance(value, (int, float)) and value <= 0:
                yield Hit(call.node, f"{name}={value} is refused: it must be positive")
            elif isinstance(value, float) and made.last == "TPUEstimator":
                yield Hit(call.node, f"{name}={value} is refused: it must be an int")
