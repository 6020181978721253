"""`tf.flags`, `tf.app` and `tf.logging` to absl."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.era import is_program
from estimator2strategy.tools.migrate.module import Module, legacy_name

_FLAGS = "tf.flags.FLAGS"
_RUNS = ("tf.app.run", "absl.app.run")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Methods of FLAGS that do the same before the command line is parsed.
_NOT_READ = ("set_default",)


def early_reads(module: Module) -> Iterator[ast.expr]:
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
    readers = {
        name for name, body in bodies.items() if any(_reads(module, n) for n in ast.walk(body))
    }
    while True:
        more = {
            name
            for name, body in bodies.items()
            if any(isinstance(node, ast.Name) and node.id in readers for node in ast.walk(body))
        }
        if more <= readers:
            return readers
        readers |= more


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


_ARGUMENTS = {"flag_name": "name", "default_value": "default", "docstring": "help"}


@codemod("flags", stage=2, tier=SafetyTier.SAFE)
def find_flags(module: Module) -> Iterator[Any]:
    used = [node for node, _ in module.uses("tf.flags")]
    if not used and not any(module.uses("tf.app")):
        return
    reads = list(early_reads(module))
    for node in reads:
        yield Todo(node, "absl reads the command line in app.run only; move this below it")
    runs = [*module.calls("tf.app.run", "absl.app.run")]
    if used and not reads and not runs and is_program(module.source):
        yield Todo(used[0], "nothing parses the flags here but tf.flags: call app.run(main)")
        return
    if reads:
        return
    alone = Path(module.source.path).stem not in module.facts.imported
    tier = SafetyTier.SAFE if runs and alone else SafetyTier.REVIEW
    for change in _flags(module):
        yield dataclasses.replace(change, tier=tier)
    for one in _app(module):
        yield dataclasses.replace(one, tier=SafetyTier.REVIEW)


def _flags(module: Module) -> Iterator[Any]:
    alias: Any = module.assigned_to("tf.flags")
    imported: Any
    if alias is not None and module.is_shadowed(alias.targets[0].id):
        alias = None
    if alias is not None:
        bound = alias.targets[0].id
        imported = ("absl", "flags", None if bound == "flags" else bound)
        if module.is_alone(alias):
            yield module.replace_statement(alias, "", [imported])
    else:
        bound, imported = module.needed("absl", "flags", "absl_flags")
    for node, _ in module.uses("tf.flags"):
        part = module.part(node, "tf.flags")
        if part is not None and not (alias is not None and part is alias.value):
            yield module.replace(part, bound, [imported])
    for call in module.calls():
        name = module.name(call.node.func, call.scope) or ""
        if name.startswith("tf.flags.DEFINE_"):
            for keyword in call.node.keywords:
                if keyword.arg in _ARGUMENTS:
                    yield module.rename_keyword(call, keyword.arg, _ARGUMENTS[keyword.arg])


def _app(module: Module) -> Iterator[Any]:
    bound, imported = module.needed("absl", "app", "absl_app")
    for call in module.calls("tf.app.run"):
        if not isinstance(call.node.func, ast.Attribute):
            continue
        if call.node.args or any(keyword.arg == "main" for keyword in call.node.keywords):
            yield module.replace(call.node.func, f"{bound}.run", [imported])
        elif "main" in module.source.scope.bindings and not call.node.keywords:
            yield module.replace(call.node, f"{bound}.run(main)", [imported])
        else:
            yield Todo(call.node, "absl's app.run must be given the function to run")


# absl.logging.fatal ends the process; tf.logging.fatal did not.
_NAMES = {
    name: name
    for name in (
        "DEBUG", "ERROR", "FATAL", "INFO", "WARN", "debug", "error", "flush", "get_verbosity",
        "info", "log", "log_every_n", "log_first_n", "log_if", "vlog", "warning",
    )
} | {"warn": "warning", "fatal": "error"}  # fmt: skip


@codemod("logging", stage=2, tier=SafetyTier.REVIEW)
def find_logging(module: Module) -> Iterator[Any]:
    if module.tf is None:
        return
    bound, imported = module.needed("absl", "logging", "absl_logging")
    verbosities = [*module.calls("tf.logging.set_verbosity")]
    changes = [_set_verbosity(module, call, bound, imported) for call in verbosities]
    yield from changes
    inside = {node for call in verbosities for node in ast.walk(call.node)}
    open_levels = any(isinstance(f, Todo) for f in changes)
    for node, name in module.uses("tf.logging"):
        last = name.removeprefix("tf.logging.")
        part = module.part(node, name)
        if part is None or part in inside or (open_levels and last.isupper()):
            continue
        if last in _NAMES:
            yield module.replace(part, f"{bound}.{_NAMES[last]}", [imported])


def _set_verbosity(module: Module, call: Any, bound: Any, imported: Any) -> Any:
    """Sets both verbosities, where the level is given by its name."""
    statement = module.statement(call.node)
    level = module.name(call.node.args[0], call.scope) if call.node.args else None
    last = (level or "").removeprefix("tf.logging.")
    alone = isinstance(statement, ast.Expr) and statement.value is call.node
    if last not in _NAMES or not alone or not module.is_alone(statement):
        return Todo(call.node, "absl counts levels otherwise (INFO is 0); set them by name")
    python = {"WARN": "WARNING", "FATAL": "CRITICAL"}.get(last, last)
    text = f"{bound}.set_verbosity({bound}.{last})\n{module.tf}.get_logger().setLevel('{python}')"
    return module.replace_statement(statement, text, [imported])
