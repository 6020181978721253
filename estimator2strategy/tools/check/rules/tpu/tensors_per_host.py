"""PER_HOST_V2 with an input_fn that returns tensors."""

import ast

from estimator2strategy.tools.check.estimator_programs import input_functions, returned
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.source import arguments_of


def find(source, context):
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(definition.node):
            continue
        for value in returned(definition.node):
            made = source.call(value, definition.scope)
            if made is not None and made.last == "get_next" and isinstance(value, ast.expr):
                yield Hit(value, f"{definition.node.name} returns tensors, not a Dataset")
