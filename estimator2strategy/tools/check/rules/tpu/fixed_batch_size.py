"""input_fn of a TPUEstimator that makes batches of a size of its own."""

import ast

from estimator2strategy.tools.check.estimator_programs import input_functions
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.source import arguments_of, names_in


def find(source, context):
    if source not in context.project.tpu_sources:
        return
    sizes = {
        ast.unparse(size)
        for call in source.calls
        if (size := call.argument("train_batch_size")) is not None
    }
    per_host = "PER_HOST_V2" not in source.text and "PER_SHARD" not in source.text
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(definition.node):
            continue
        text = ast.unparse(definition.node)
        if "batch_size']" in text or "batch_size" in text.partition("params.")[2]:
            continue
        for call in context.project.calls_of(definition):
            size = call.argument("batch_size", 0)
            if size is not None and per_host and ast.unparse(size) in sizes:
                continue
            if call.last == "batch" and size is not None and _is_fixed(size, call):
                yield Hit(
                    call.node,
                    f"batches of {ast.unparse(size)}, whatever params['batch_size'] says",
                )


def _is_fixed(size, call):
    value = call.source.constant(size, call.scope)
    if isinstance(value, int) and value > 1:
        return True
    return isinstance(size, ast.Attribute) and names_in(size) & {"FLAGS", "flags"} != set()
