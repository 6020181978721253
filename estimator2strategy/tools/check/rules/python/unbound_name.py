"""Names that are read where nothing has bound them yet, or any more."""

import ast
import builtins
import re

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.python2_names import unguarded
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.source import parents

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LEAVES = {ast.Constant, ast.Load, ast.Store, ast.Del, ast.Pass, ast.Break, ast.Continue}
_FAR_BINDERS = re.compile(r"\b(global|nonlocal|match)\b")
_BINDERS = {"exec", "locals", "globals", "eval", "vars"}


def find(source, context):
    if any(call.last in _BINDERS for call in source.calls) or source.stars:
        return
    reads = {}
    for node, scope in source.chains:
        name = node
        while isinstance(name, ast.Attribute):
            name = name.value
        where = scope.find(name.id)
        if where is None or isinstance(where.node, (ast.Lambda, ast.ClassDef)):
            continue
        if where is scope or _is_unknown(where.bindings[name.id]):
            reads.setdefault((where, name.id), []).append((name, scope))
    known = {}
    deep = _FAR_BINDERS.search(source.text) is not None
    for (where, name), found in reads.items():
        if where not in known:
            known[where] = _stores(where.node, deep)
        node, why = _unbound(name, where, found, *known[where])
        if node is not None and unguarded(node) and not unreached.is_tried(node, unreached.ANY):
            yield Hit(node, why)


def _is_unknown(values):
    return all(value is None for value in values)


def _unbound(name, where, reads, bound, others):
    """(the first read that fails, why); (None, "") if none does for certain."""
    is_module = where.parent is None
    if not is_module and name in _arguments(where.node):
        return None, ""
    stores = bound.get(name, ())
    if (
        others is None
        or name in others
        or (is_module and (name in dir(builtins) or name.startswith("__")))
    ):
        return None, ""
    outer = where.parent.find(name) if where.parent is not None else None
    if outer is None and not hasattr(builtins, name) and stores:
        for kind, message in (
            (_COMPREHENSIONS, "only a comprehension binds {}, and keeps it to itself"),
            (ast.ExceptHandler, "{} is deleted where its `except` ends"),
        ):
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
            kind = "the file" if is_module else "the function"
            return node, f"{kind} binds {name} only in line {line}"
    return None, ""


def _arguments(function):
    every = function.args
    found = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    return {argument.arg for argument in found if argument is not None}


def _stores(outer, deep):
    """(name -> the nodes in a function or module itself that bind it, names that others bind).

    The second is None if there are statements that bind in ways not known here. Only if `deep`,
    functions inside may bind names of this one.
    """
    found, others = {}, set()
    todo = [(node, True) for node in ast.iter_child_nodes(outer)]
    while todo:
        node, own = todo.pop()
        kind = type(node)
        if kind in _LEAVES:
            continue
        if kind in (ast.Global, ast.Nonlocal):
            others.update(node.names)
        elif kind in (ast.MatchAs, ast.MatchStar, ast.MatchMapping):
            return {}, None
        elif own:
            name = _bound(node, kind)
            if name is not None:
                found.setdefault(name, []).append(node)
            own = not isinstance(node, _INNER)
        if not own and not deep:
            continue
        todo += [(child, own) for child in ast.iter_child_nodes(node)]
    return found, others


def _bound(node, kind):
    """The name that a node binds."""
    if kind is ast.Name:
        return node.id if type(node.ctx) is ast.Store else None
    if kind is ast.alias:
        return (node.asname or node.name).partition(".")[0]
    return getattr(node, "name", None)


def _home(store, kind):
    """The comprehension or handler that binds a name; None if something else does."""
    if isinstance(store, ast.ExceptHandler):
        return store if kind is ast.ExceptHandler else None
    if kind is ast.ExceptHandler or not isinstance(store, ast.Name):
        return None
    inner = store
    for outer in parents(store):
        if isinstance(outer, ast.comprehension):
            if inner is not outer.target:
                return None
            return outer.parent
        if isinstance(outer, ast.stmt):
            return None
        inner = outer
    return None


def _is_in(node, home):
    return any(outer is home for outer in parents(node))


def _in_comprehension_of(node, name):
    """True if a comprehension around a node binds its name."""
    return any(
        isinstance(outer, _COMPREHENSIONS)
        and any(
            isinstance(n, ast.Name) and n.id == name
            for generator in outer.generators
            for n in ast.walk(generator.target)
        )
        for outer in parents(node)
    )


def _time(store):
    """The place in a file from which on a name is bound."""
    if isinstance(store, ast.Name):
        for outer in parents(store):
            last = None
            if isinstance(outer, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
                last = outer.value
            elif isinstance(outer, (ast.For, ast.AsyncFor)):
                last = outer.iter
            elif isinstance(outer, ast.withitem):
                last = outer.context_expr
            if last is not None:
                return last.end_lineno, last.end_col_offset
            if isinstance(outer, ast.stmt):
                break
    if isinstance(store, (*_FUNCTIONS, ast.ClassDef)) and store.decorator_list:
        return store.lineno, store.col_offset
    return getattr(store, "lineno", 0), getattr(store, "col_offset", 0)


def _share_loop(node, stores, function):
    """True if a loop around a read has a store in it, too, by which it may be bound."""
    for outer in parents(node):
        if outer is function:
            return False
        is_loop = isinstance(outer, (ast.For, ast.AsyncFor, ast.While))
        if is_loop and any(_is_in(store, outer) for store in stores):
            return True
    return False
