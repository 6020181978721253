"""padded_batch to the longest example, on TPUs."""

import ast

from estimator2strategy.tools.check.estimator_programs import input_functions
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.source import arguments_of


def find(source, context):
    if source not in context.project.tpu_sources:
        return
    for definition in input_functions(source, context.project):
        if "params" not in arguments_of(definition.node):
            continue
        for call in context.project.calls_of(definition):
            shapes = call.argument("padded_shapes", 1)
            if call.last != "padded_batch" or shapes is None:
                continue
            found = source.assigned(shapes, call.scope)
            if _is_open(found[0] if found else shapes):
                yield Hit(call.node, "padded to the longest example of each batch")


def _is_open(shapes):
    for node in ast.walk(shapes):
        if isinstance(node, (ast.List, ast.Tuple)):
            for item in node.elts:
                if isinstance(item, ast.Constant) and item.value is None:
                    return True
                if isinstance(item, ast.UnaryOp) and ast.unparse(item) == "-1":
                    return True
    return False
