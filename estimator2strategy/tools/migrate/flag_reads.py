"""Finds reads of flags at import, before `app.run` has parsed the command line.

    for node in early(module):
        print(node.lineno)

tf.flags parses at the first read, absl does not. What a function reads is read where it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator2strategy.tools.migrate.module import Module, legacy_name

_FLAGS = "tf.flags.FLAGS"
_RUNS = ("tf.app.run", "absl.app.run")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Methods of FLAGS that do the same before the command line is parsed.
_NOT_READ = ("set_default",)


def early(module: Module) -> Iterator[ast.expr]:
    """The expressions that read flags while the file is imported, or call what reads them."""
    readers = _readers(module)
    for node in _at_import(module.source.tree):
        if _reads(module, node) or (isinstance(node, ast.Name) and node.id in readers):
            assert isinstance(node, ast.expr)
            if _reads(module, node) or _is_called(module, node):
                yield node


def _reads(module: Module, node: ast.AST) -> bool:
    """True if an expression is a flag, or hands all flags to something."""
    if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
        return False
    name = module.name(node) or ""
    outer = node.parent  # type: ignore[union-attr]
    if name == _FLAGS:
        # `FLAGS = tf.flags.FLAGS` is not yet a read, nor is `FLAGS(sys.argv)`.
        is_parsed = isinstance(outer, ast.Call) and outer.func is node
        return not is_parsed and not isinstance(outer, (ast.Assign, ast.Attribute))
    flag = name.removeprefix(f"{_FLAGS}.")
    return flag not in (name, *_NOT_READ) and "." not in flag


def _readers(module: Module) -> set[str]:
    """The functions and classes at the top of a file in which flags are read, or called in them."""
    bodies: dict[str, ast.AST] = {}
    for node in _at_import(module.source.tree):
        if isinstance(node, _DEFINITIONS):
            bodies[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            bodies |= {name.id: node.value for name in node.targets if isinstance(name, ast.Name)}
    found = {
        name for name, body in bodies.items() if any(_reads(module, n) for n in ast.walk(body))
    }
    while True:
        more = {
            name
            for name, body in bodies.items()
            if any(isinstance(node, ast.Name) and node.id in found for node in ast.walk(body))
        }
        if more <= found:
            return found
        found |= more


def _is_called(module: Module, node: ast.expr) -> bool:
    """True if a function's name is called, or is given to a call that is not `app.run`."""
    if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
        return False
    outer = node.parent  # type: ignore[attr-defined]
    if isinstance(outer, ast.keyword):
        outer = outer.parent  # type: ignore[attr-defined]
    if isinstance(outer, ast.Call):
        called = module.source.name(outer.func, module.source.scope)
        return outer.func is node or legacy_name(called or "") not in _RUNS
    return isinstance(outer, (ast.Attribute, *_DEFINITIONS))


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are evaluated when a file is imported: all but the bodies of functions."""
    todo = [tree]
    while todo:
        node = todo.pop(0)
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            todo += getattr(node, "decorator_list", [])
            todo += [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        else:
            todo += ast.iter_child_nodes(node)
