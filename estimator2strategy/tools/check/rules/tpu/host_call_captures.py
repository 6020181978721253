"""Host functions that capture what only the cores have."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import captured_tensors
from estimator2strategy.tools.reader.source import Function

_FIELDS = ("host_call", "eval_metrics")


def find(source, context):
    for model in context.project.model_functions:
        if model.source is not source or not context.project.may_use_tpu(model):
            continue
        for function in _host_functions(model):
            for name, node in captured_tensors(function, model.node, source).items():
                what = getattr(function, "name", "the lambda")
                yield Hit(node, f"{what} runs on the host, and captures {name} of model_fn")


def _host_functions(model):
    """The functions in the pairs that the specs are given."""
    scope = model.source.scopes[model.node]
    for spec in model.specs:
        for field in _FIELDS:
            pair = spec.argument(field)
            if pair is None:
                continue
            pairs = [pair]
            if isinstance(pair, ast.Name):
                pairs = [v for v in scope.bindings.get(pair.id, ()) if isinstance(v, ast.expr)]
            for value in pairs:
                if isinstance(value, ast.Tuple) and value.elts:
                    yield from _functions(value.elts[0], scope)


def _functions(node, scope):
    if isinstance(node, ast.Lambda):
        yield node
    elif isinstance(node, ast.Name):
        for value in scope.bindings.get(node.id, ()):
            if isinstance(value, (ast.Lambda, Function)):
                yield value
