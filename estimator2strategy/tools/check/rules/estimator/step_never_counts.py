"""A train op that does not count the global step."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import is_optimizer_step

_COUNTS = ("assign_add", "global_step + 1", "global_step+1", "optimize_loss", "create_train_op")


def find(source, context):
    project = context.project
    for model in project.model_functions:
        if model.source is not source:
            continue
        updates = [
            call
            for call in project.calls_of(model.definition)
            if call.last in ("minimize", "apply_gradients")
            and is_optimizer_step(call, of_project=False)
        ]
        if not updates or any(word in source.text for word in _COUNTS):
            continue
        if all(_counts_nothing(call) for call in updates):
            for call in updates:
                yield Hit(call.node, f".{call.last}() without global_step: the step stays 0")


def _counts_nothing(call):
    given = call.argument("global_step", 1)
    if call.is_open:
        return False
    return given is None or call.source.constant(given, call.scope) is None
