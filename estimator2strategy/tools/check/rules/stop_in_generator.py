"""Generators that end by StopIteration."""

import ast
from collections.abc import Iterator

from estimator2strategy.tools.check import unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import all_of, own_nodes
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.source import names_in, parents

_STOP = "StopIteration"
_CAUGHT = {_STOP, "RuntimeError", "Exception", "BaseException", ""}


@rule(
    "E2S019",
    "stop-in-generator",
    Severity.ERROR,
    title="A generator that ends by raising StopIteration",
    why="Since Python 3.7 a StopIteration that leaves a generator becomes a RuntimeError: the "
    "input of `Dataset.from_generator` fails where it should end.",
    fix="Write `return`.",
    bad="def examples(rows):\n    for row in rows:\n        if not row:\n"
    "            raise StopIteration\n        yield row\n",
    good="def examples(rows):\n    for row in rows:\n        if not row:\n"
    "            return\n        yield row\n",
)
def find(source, context):
    del context
    if _STOP not in source.text:
        return
    for function in all_of(source, ast.FunctionDef):
        nodes = list(own_nodes(function))
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
            for node in _stops(nodes):
                if not unreached.is_tried(node, _CAUGHT):
                    yield Hit(node, f"{_STOP} is no end of {function.name}, but a RuntimeError")


def _stops(nodes: list[ast.AST]) -> Iterator[ast.Raise]:
    """The statements that raise StopIteration, or raise it again."""
    for node in nodes:
        if isinstance(node, ast.Raise):
            if node.exc is None:
                outer = (p for p in parents(node) if isinstance(p, ast.ExceptHandler))
                caught = getattr(next(outer, None), "type", None)
                raised = names_in(caught) if caught else set()
            else:
                made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                raised = {made.id} if isinstance(made, ast.Name) else set()
            if _STOP in raised:
                yield node
