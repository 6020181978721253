"""Hooks of a TPU model that fetch what only the TPU computes."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf

_HOOKS = ("LoggingTensorHook", "SummarySaverHook", "FinalOpsHook", "NanTensorHook", "FeedFnHook")


def find(source, context):
    for model in context.project.model_functions:
        if model.source is not source or not context.project.may_use_tpu(model):
            continue
        given = {
            node.id
            for spec in model.specs
            if spec.last == "TPUEstimatorSpec"
            for keyword in spec.node.keywords
            if keyword.arg in ("training_hooks", "evaluation_hooks")
            for node in ast.walk(keyword.value)
            if isinstance(node, ast.Name)
        }
        for call in context.project.device_calls(model.definition):
            if is_tf(call.name, *_HOOKS) and _is_given(call, given):
                yield Hit(call.node, f"{call.last} fetches tensors that the cores compute")


def _is_given(call, names):
    node = call.node
    while not isinstance(node, ast.stmt):
        node = node.parent
        if isinstance(node, ast.keyword) and node.arg in ("training_hooks", "evaluation_hooks"):
            return True
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(t, ast.Name) and t.id in names for t in targets)
