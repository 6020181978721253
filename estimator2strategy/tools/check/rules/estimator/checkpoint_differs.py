"""A checkpoint that the model does not fit."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit


def find(recorded, subject):
    if subject.checkpoint is None or recorded.on_cores != subject.model.for_tpu:
        return
    saved = subject.saved_variables
    made = {v.op.name: v for v in recorded.graph.get_collection("variables")}
    for name, variable in made.items():
        if name not in saved:
            yield Hit(variable.op, f"{recorded.mode}: {name!r} is not in {subject.checkpoint}")
        elif not variable.shape.is_compatible_with(saved[name]):
            shape = "x".join(map(str, saved[name])) or "scalar"
            yield Hit(
                variable.op,
                f"{recorded.mode}: {name!r} has the shape {variable.shape}, and {shape} in "
                f"{subject.checkpoint}",
            )
    if recorded.mode == Mode.TRAIN:
        for name in sorted(set(saved) - set(made)):
            message = f"only {subject.checkpoint} has {name!r}; it is not restored"
            yield Hit(None, message, severity=Severity.INFO)
