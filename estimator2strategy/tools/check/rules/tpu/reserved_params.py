"""params keys that TPUEstimator sets itself."""

import ast

from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit


def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator"):
            continue
        params = call.argument("params", 3)
        if params is None:
            continue
        found = source.assigned(params, call.scope)
        value, _scope = found or (params, call.scope)
        for key, node in _items(value):
            if key in ("batch_size", "context"):
                yield Hit(node, f"{key!r} is a reserved key of a TPUEstimator's params")


def _items(value):
    if isinstance(value, ast.Dict):
        for key in value.keys:
            if isinstance(key, ast.Constant):
                yield key.value, key
    elif (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict"
    ):
        for keyword in value.keywords:
            yield keyword.arg, keyword.value
