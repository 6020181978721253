"""Batches whose size is not fixed, on TPUs."""

import ast

from estimator2strategy.tools.check.estimator_programs import input_functions
from estimator2strategy.tools.check.project import is_tensorflow
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.source import arguments_of

_FIXES_THE_SHAPE = {"batch_and_drop_remainder", "set_shape", "reshape", "trim_and_pad_dataset"}
_BATCH = {"batch": 1, "padded_batch": 3, "map_and_batch": 4}


def find(source, context):
    if source not in context.project.tpu_sources:
        return
    used = {call.last for call in source.calls}
    if "predict" in used and not used & {"train", "train_and_evaluate", "TrainSpec"}:
        return
    for definition in input_functions(source, context.project):
        name = f"{definition.scope.name}".lower()
        if "params" not in arguments_of(definition.node) or any(
            word in name for word in ("predict", "eval", "infer", "serving", "test")
        ):
            continue
        calls = context.project.calls_of(definition)
        if any(call.last in _FIXES_THE_SHAPE for call in calls):
            continue
        for call in calls:
            if (
                call.last not in _BATCH
                or call.is_open
                or not (call.node.args or call.node.keywords)
            ):
                continue
            if _is_handed_on(call, calls):
                continue
            given = call.argument("drop_remainder", _BATCH[call.last])
            if given is None or source.constant(given, call.scope) is False:
                yield Hit(call.node, f".{call.last}() without drop_remainder=True feeds a TPU")


def _is_handed_on(batch, calls):
    """True if a function that is not TensorFlow's gets the batches, and may give them a shape."""
    statement = batch.node
    while not isinstance(statement, ast.stmt):
        statement = statement.parent
    if not isinstance(statement, ast.Assign):
        return False
    targets = {ast.unparse(target) for target in statement.targets}
    return any(
        ast.unparse(argument) in targets
        for call in calls
        if not is_tensorflow(call.name)
        for argument in call.node.args
    )
