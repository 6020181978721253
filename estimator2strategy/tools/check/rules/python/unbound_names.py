"""Names that nothing binds, or that are read before or after they are bound."""

import ast
import builtins
import os
import re
import symtable
from collections.abc import Iterator
from typing import Any

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.lost_names import BUILTINS, unguarded
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.own_code import BINDERS, brought_by_stars
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import (
    Function,
    LexicalScope,
    Source,
    kept,
    parents,
    walk,
)

# Names that a module has without binding them, or that notebooks and profilers give it.
_GIVEN = {
    *dir(builtins), *BUILTINS, "__file__", "__path__", "__builtins__", "__module__", "__qualname__",
    "__class__", "__annotations__", "WindowsError", "_", "display", "get_ipython", "profile",
}  # fmt: skip
# Names that Jupyter and IPython give to their files of settings, and the signs of such a file.
_GIVEN_TO_SETTINGS = {"c", "get_config", "load_subconfig"}
_SETTINGS_FILE = re.compile(r"(jupyter|ipython|nbgrader)\w*_conf(ig)?\.py")
_SETTINGS_TEXT = re.compile(r"^c = get_config\(\)", re.MULTILINE)
# Functions that may bind names which no reading sees, in a module or in a class.
_BINDERS = BINDERS | {"locals"}


def undefined_name(source: Source, context: Context) -> Iterator[Hit]:
    brought = brought_by_stars(source, context.project)
    if brought is None:
        return
    read = [(_base(node), scope) for node, scope in source.chains]
    if any(name.id in _BINDERS for name, _ in read):
        return
    free = None
    submodules = _submodules(source, context.project)
    given = _GIVEN | context.project.set_by_others.get(source.path, set())
    if _is_settings(source):
        given |= _GIVEN_TO_SETTINGS
    seen = set()
    for name, scope in read:
        if name.id in given or name.id in seen or scope.find(name.id) is not None:
            continue
        if name.id in brought or name.id in submodules:
            continue
        if free is None:
            free = _free(source)
        if name.id in free and _unguarded(name) and not _is_annotation(name):
            seen.add(name.id)
            yield Hit(name, f"nothing binds the name {name.id}", fix=_hint(name, scope))


def _hint(node: ast.Name, scope: LexicalScope) -> str | None:
    """The advice for `self`, and for a name that a class around its use has."""
    if node.id == "self":
        return _without_self(node)
    owns = any(outer.is_class and node.id in outer.bindings for outer in scope.ancestors())
    return f"Did you mean self.{node.id}?" if owns else None


def _without_self(node: ast.Name) -> str | None:
    """The advice for `self` in a function that is not given it."""
    around = [n for n in parents(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    if not around or not isinstance(around[0], ast.FunctionDef):
        return None
    if len(around) > 1 and isinstance(around[1], ast.ClassDef):
        return f"Make it the first argument of the method: `def {around[0].name}(self, ...)`."
    return f"{around[0].name} is no method: give it the object as an argument."


def _is_settings(source: Source) -> bool:
    """True for a file of settings that Jupyter or IPython runs: it is given names by them."""
    file = os.path.basename(source.path)
    return bool(_SETTINGS_FILE.fullmatch(file) or _SETTINGS_TEXT.search(source.text))


def _submodules(source: Source, project: Project) -> set[str]:
    """The modules beside a package's file, if it imports any: an import binds them in it.

    `import models.nets` in models/__init__.py gives that file the name `nets`; so does whatever
    else it imports from its own folder.
    """
    folder, file = os.path.split(source.path)
    if file != "__init__.py":
        return set()
    paths = (project.imported_file(source, target) for target, _ in source.imports)
    if not any(path and path.startswith(f"{folder}{os.sep}") for path in paths):
        return set()
    return {entry.partition(".")[0] for entry in os.listdir(folder)}


def _base(node: ast.expr) -> ast.Name:
    while isinstance(node, ast.Attribute):
        node = node.value
    assert isinstance(node, ast.Name)
    return node


def _free(source: Source) -> set[str]:
    """The names of a file that Python looks up in its module, and that the module never binds."""
    module = symtable.symtable(source.text, source.shown, "exec")
    looked_up: set[str] = set()
    bound = {symbol.get_name() for symbol in module.get_symbols() if _binds(symbol)}
    for table in _tables(module):
        for symbol in table.get_symbols():
            if table is module or symbol.is_global():
                if symbol.is_referenced():
                    looked_up.add(symbol.get_name())
                if _binds(symbol):
                    bound.add(symbol.get_name())
    return looked_up - bound


def _binds(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _is_annotation(node: ast.AST) -> bool:
    """True in an annotation, which may not be evaluated."""
    inner = node
    for outer in parents(node):
        if isinstance(outer, (ast.arg, ast.AnnAssign)) and outer.annotation is inner:
            return True
        inner = outer
    return False


def _unguarded(name: ast.Name) -> bool:
    """True if it is `unguarded`, or only by a `try` that lets a NameError pass."""
    inner: ast.AST = name
    for outer in parents(name):
        caught = isinstance(outer, ast.Try) and any(map(_may_catch, outer.handlers))
        if caught or (isinstance(outer, ast.Try) and inner not in outer.body):
            return False
        inner = outer
    return unguarded(name, tries=False)


def _may_catch(handler: ast.ExceptHandler) -> bool:
    """True unless it catches errors of Python that a NameError is none of."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = [getattr(builtins, getattr(kind, "id", ""), Exception) for kind in kinds]
    return any(not isinstance(kind, type) or issubclass(NameError, kind) for kind in caught)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Nodes with the name that they bind, and patterns, which may bind any.
_NAMED = (*_FUNCTIONS, ast.ClassDef, ast.ExceptHandler)
_MATCHES = (ast.MatchAs, ast.MatchStar, ast.MatchMapping)
# Name -> the nodes that bind it.
_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler
_Store = ast.Name | ast.alias | _Named
_Stores = dict[str, list[_Store]]
_Kind = type[ast.AST] | tuple[type[ast.AST], ...]
_BINDING = {"exec", "locals", "globals", "eval", "vars"}


def unbound_name(source: Source, context: Context) -> Iterator[Hit]:
    if any(call.last in _BINDING for call in source.calls) or source.stars:
        return
    reads: dict[tuple[LexicalScope, str], list[tuple[ast.Name, LexicalScope]]] = {}
    for chain, scope in source.chains:
        name = _base(chain)
        where = scope.find(name.id)
        if where is None or isinstance(where.node, (ast.Lambda, ast.ClassDef)):
            continue
        if where is scope or _is_unknown(where.bindings[name.id]):
            reads.setdefault((where, name.id), []).append((name, scope))
    for (where, read), found in reads.items():
        node, why = _unbound(read, where, found, *_stores(source, where.node))
        if node is not None and unguarded(node) and not unreached.is_tried(node, unreached.ANY):
            yield Hit(node, why)


def _is_unknown(values: list[Any]) -> bool:
    return all(value is None for value in values)


def _unbound(
    name: str,
    where: LexicalScope,
    reads: list[tuple[ast.Name, LexicalScope]],
    bound: _Stores,
    others: set[str] | None,
) -> tuple[ast.Name | None, str]:
    """(the first read that fails, why); (None, "") if none does for certain."""
    is_module = where.parent is None
    if isinstance(where.node, _FUNCTIONS) and name in _arguments(where.node):
        return None, ""
    stores = bound.get(name, [])
    if (
        others is None
        or name in others
        or (is_module and (name in dir(builtins) or name.startswith("__")))
    ):
        return None, ""
    outer = where.parent.find(name) if where.parent is not None else None
    if outer is None and not hasattr(builtins, name) and stores:
        ways: tuple[tuple[_Kind, str], ...] = (
            (_COMPREHENSIONS, "only a comprehension binds {}, and keeps it to itself"),
            (ast.ExceptHandler, "{} is deleted where its `except` ends"),
        )
        for kind, message in ways:
            homes = [_home(store, kind) for store in stores]
            if all(homes):
                lost = [n for n, _ in reads if not any(_is_in(n, home) for home in homes)]
                return (lost[0], message.format(name)) if lost else (None, "")
    stores = [s for s in stores if not _home(s, _COMPREHENSIONS)]
    if not stores or any(_home(s, ast.ExceptHandler) for s in stores):
        return None, ""
    start = min(map(_time, stores))
    for node, scope in reads:
        early = (node.lineno, node.col_offset) < start
        if not early or scope is not where or _in_comprehension_of(node, name):
            continue
        if not _share_loop(node, stores, where.node):
            line = min(s.lineno for s in stores)
            home = "the file" if is_module else "the function"
            return node, f"{home} binds {name} only in line {line}"
    return None, ""


def _arguments(function: Function) -> set[str]:
    every = function.args
    found = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    return {argument.arg for argument in found if argument is not None}


def _stores(source: Source, outer: ast.AST) -> tuple[_Stores, set[str] | None]:
    """(name -> the nodes in a function or module itself that bind it, names that others bind).

    The second is None if there are statements that bind in ways not known here.
    """
    stores, others = _bindings(source)
    return stores.get(outer, {}), others.get(outer, set())


@kept
def _bindings(source: Source) -> tuple[dict[ast.AST, _Stores], dict[ast.AST, set[str] | None]]:
    """Function or module -> (name -> the nodes that bind it), and names that inner ones bind."""
    found: dict[ast.AST, _Stores] = {}
    others: dict[ast.AST, set[str]] = {}
    names: list[tuple[str, _Store, ast.AST]] = [
        (name.id, name, name) for name in source.all_of(ast.Name) if type(name.ctx) is ast.Store
    ]
    imports: list[ast.Import | ast.ImportFrom] = source.all_of(ast.Import, ast.ImportFrom)
    for node in imports:
        names += [((a.asname or a.name).partition(".")[0], a, node) for a in node.names]
    named: list[_Named] = source.all_of(*_NAMED)
    names += [(each.name, each, each) for each in named if each.name]
    for name, store, place in names:
        block = next(_blocks(place))
        found.setdefault(block, {}).setdefault(name, []).append(store)
    outside: list[ast.Global | ast.Nonlocal] = source.all_of(ast.Global, ast.Nonlocal)
    for statement in outside:
        for block in _blocks(statement):
            others.setdefault(block, set()).update(statement.names)
    unknown = {block for match in source.all_of(*_MATCHES) for block in _blocks(match)}
    return found, {**others, **dict.fromkeys(unknown)}


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """The functions, classes and the module around a node, from the inside out."""
    return (outer for outer in parents(node) if isinstance(outer, (*_INNER, ast.Module)))


def _home(store: ast.AST, kind: _Kind) -> ast.AST | None:
    """The comprehension or handler that binds a name; None if something else does."""
    if isinstance(store, ast.ExceptHandler):
        return store if kind is ast.ExceptHandler else None
    if kind is ast.ExceptHandler or not isinstance(store, ast.Name):
        return None
    inner: ast.AST = store
    for outer in parents(store):
        if isinstance(outer, ast.comprehension):
            if inner is not outer.target:
                return None
            return next(parents(outer))
        if isinstance(outer, ast.stmt):
            return None
        inner = outer
    return None


def _is_in(node: ast.AST, home: ast.AST | None) -> bool:
    return any(outer is home for outer in parents(node))


def _in_comprehension_of(node: ast.AST, name: str) -> bool:
    """True if a comprehension around a node binds its name."""
    return any(
        isinstance(outer, _COMPREHENSIONS)
        and any(
            isinstance(n, ast.Name) and n.id == name
            for generator in outer.generators
            for n in walk(generator.target)
        )
        for outer in parents(node)
    )


def _time(store: _Store) -> tuple[int, int]:
    """The place in a file from which on a name is bound."""
    if isinstance(store, ast.Name):
        for outer in parents(store):
            last: ast.expr | None = None
            if isinstance(outer, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
                last = outer.value
            elif isinstance(outer, (ast.For, ast.AsyncFor)):
                last = outer.iter
            elif isinstance(outer, ast.withitem):
                last = outer.context_expr
            if last is not None:
                return last.end_lineno or 0, last.end_col_offset or 0
            if isinstance(outer, ast.stmt):
                break
    return store.lineno, store.col_offset


def _share_loop(node: ast.AST, stores: list[_Store], function: ast.AST) -> bool:
    """True if a loop around a read has a store in it, too, by which it may be bound."""
    for outer in parents(node):
        if outer is function:
            return False
        is_loop = isinstance(outer, (ast.For, ast.AsyncFor, ast.While))
        if is_loop and any(_is_in(store, outer) for store in stores):
            return True
    return False
