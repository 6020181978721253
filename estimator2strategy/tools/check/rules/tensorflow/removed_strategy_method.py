"""Methods of strategies that are gone."""

import ast

from estimator2strategy.tools.check.rule import Hit

_METHODS = {
    "experimental_run_v2": "run",
    "experimental_local_results_v2": "experimental_local_results",
    "experimental_make_numpy_dataset": "tf.data.Dataset.from_tensor_slices",
    "call_for_each_replica": "run",
}


def find(source, context):
    for call in source.calls:
        function = call.node.func
        if call.last not in _METHODS or not isinstance(function, ast.Attribute):
            continue
        owner = ast.unparse(function.value).lower()
        if "strategy" in owner and "tf." not in owner and ".extended" not in owner:
            instead = _METHODS[call.last]
            yield Hit(call.node, f".{call.last}() is gone", fix=f"Use {instead}.")
