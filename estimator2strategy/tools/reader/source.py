"""One file of source: its tree, its scopes, and the objects that its names stand for.

    source = Source(path, shown, text, ast.parse(text))
    source.resolve(node, scope)        # "tensorflow.contrib.layers.conv2d", through any alias
    source.calls                       # every call, with the scope it is in

Names are resolved without running anything, by imports, by variables that are assigned once, and by
definitions. A name that may stand for several things is None, and no rule reports on it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from estimator2strategy.engine.names import tables

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Answer = TypeVar("_Answer")
_Node = TypeVar("_Node", bound=ast.AST)
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = (*_DEFINED, ast.Lambda)


def kept(function: Callable[..., _Answer]) -> Callable[..., _Answer]:
    """Keeps the answers of a function in its first argument, a file or a project, as it lives."""

    @functools.wraps(function)
    def answer(of: Any, *others: Any) -> _Answer:
        answers: dict[Any, _Answer] = vars(of).setdefault("kept_answers", {})
        key = (function, *others)
        if key not in answers:
            answers[key] = function(of, *others)
        return answers[key]

    return answer


@dataclasses.dataclass(eq=False)
class LexicalScope:
    """The names that a module, class or function binds.

    Attributes:
        node: The module, class or function.
        parent: The scope around it, None for a module.
        name: Dotted name of the definition: "Model.call.body"; "" for a module.
        bindings: Name -> what binds it: the target of an import (a str), an expression that is
            assigned, a definition, or None for anything else (an argument, a loop variable).
    """

    node: ast.AST
    parent: LexicalScope | None
    name: str
    bindings: dict[str, list[Any]] = dataclasses.field(default_factory=dict)

    def bind(self, name: str, value: Any) -> None:
        self.bindings.setdefault(name, []).append(value)

    def find(self, name: str) -> LexicalScope | None:
        """The scope whose binding `name` means here."""
        scope: LexicalScope | None = self
        while scope is not None:
            if name in scope.bindings and (scope is self or not scope.is_class):
                return scope
            scope = scope.parent
        return None

    @functools.cached_property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @functools.cached_property
    def function(self) -> Function | None:
        """The innermost `def` around this scope (a lambda belongs to the function it is in)."""
        block = next((s.node for s in self.ancestors() if isinstance(s.node, _DEFINED)), None)
        return None if isinstance(block, ast.ClassDef) else block

    def ancestors(self) -> Iterator[LexicalScope]:
        scope: LexicalScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclasses.dataclass(frozen=True)
class Import:
    """The target of an imported name: `module`, or `name` in it; `level` counts the dots."""

    module: str
    name: str | None
    level: int
    node: ast.stmt


@dataclasses.dataclass(eq=False)
class Call:
    """A call, its place, and the name of the called object (None if it cannot be resolved)."""

    node: ast.Call
    scope: LexicalScope
    source: Source

    @functools.cached_property
    def name(self) -> str | None:
        return self.source.name(self.node.func, self.scope)

    @functools.cached_property
    def last(self) -> str:
        """The last part of what is called, as written: "batch" of `data.batch(8)`."""
        return getattr(self.node.func, "attr", getattr(self.node.func, "id", ""))

    def argument(self, name: str, position: int | None = None) -> ast.expr | None:
        """The argument given by this name, or at this position."""
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value
        arguments = self.node.args
        if position is not None and position < len(arguments):
            before = arguments[: position + 1]
            if not any(isinstance(a, ast.Starred) for a in before):
                return arguments[position]
        return None

    @property
    def is_open(self) -> bool:
        """True if `*args` or `**kwargs` may give more arguments."""
        return any(k.arg is None for k in self.node.keywords) or any(
            isinstance(a, ast.Starred) for a in self.node.args
        )

    def value(self, name: str, position: int | None = None) -> Any:
        """The constant that is given for an argument; `UNKNOWN` if there is none or it varies."""
        node = self.argument(name, position)
        return UNKNOWN if node is None else self.source.constant(node, self.scope)


class _Unknown:
    def __bool__(self) -> bool:
        return False


UNKNOWN: Any = _Unknown()


class Source:
    """A parsed file; see the module.

    Attributes:
        path: Its path on disk.
        shown: The path as it is reported.
        tree: The module, whose nodes have a `parent`.
        lines: The text by line.
        scope: The module's scope.
        calls, imports: The calls and imports of the file, in order.
        chains: The longest dotted names (`a.b.c`) that are read, each with its scope.
        functions: Each `def` with its own scope.
        classes: Each class with its own scope.
    """

    def __init__(self, path: str, shown: str, text: str, tree: ast.Module):
        self.path, self.shown, self.text, self.tree = path, shown, text, tree
        self.scope = LexicalScope(tree, None, "")
        self.calls: list[Call] = []
        self.imports: list[tuple[Import, LexicalScope]] = []
        self.chains: list[tuple[ast.expr, LexicalScope]] = []
        self.functions: list[tuple[Function, LexicalScope]] = []
        self.classes: list[tuple[ast.ClassDef, LexicalScope]] = []
        self.scopes: dict[ast.AST, LexicalScope] = {tree: self.scope}
        self.stars: list[Import] = []
        self.stored: set[str] = set()  # the attributes that are assigned
        self.stores: list[tuple[ast.Attribute, LexicalScope]] = []  # `a.b` on the left of a `=`
        # Set by the project: an import's target, the name of a raw one, the names of TensorFlow
        # that the program sets, if its modules bring a name by `import *`, and names sought there.
        self.follow: Callable[[Source, Import], str | None] = lambda source, target: None
        self.canonical: Callable[[str], str] = lambda name: name
        self.member: Callable[[str, str], str | None] = lambda base, name: f"{base}.{name}"
        self.given: Callable[[], frozenset[str]] = frozenset
        self.brings: Callable[[Source, Import, str], bool] = lambda source, star, name: False
        self.searched: set[tuple[Source, str]] = set()
        self._names: dict[tuple[LexicalScope, str | ast.Attribute], str | None] = {}
        self._walk(tree, self.scope)

    @functools.cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @functools.cached_property
    def modules(self) -> set[str]:
        """The top-level modules that are imported."""
        return {target.module.partition(".")[0] for target, _ in self.imports if not target.level}

    @functools.cached_property
    def by_kind(self) -> dict[type[ast.AST], list[Any]]:
        """The nodes by their kind."""
        found: dict[type[ast.AST], list[Any]] = {}
        for node in walk(self.tree):
            found.setdefault(type(node), []).append(node)
        return found

    def all_of(self, *kinds: type[_Node]) -> list[_Node]:
        """The nodes of these kinds."""
        return [node for kind in kinds for node in self.by_kind.get(kind, ())]

    # The walk: once over the tree, in order.

    def _walk(self, node: ast.AST, scope: LexicalScope) -> None:
        for field in _FIELDS[type(node)]:
            value = getattr(node, field, None)
            if type(value) is list:
                for item in value:
                    if isinstance(item, ast.AST):
                        self._visit(item, node, scope)
            elif isinstance(value, ast.AST):
                self._visit(value, node, scope)

    def _visit(self, node: Any, parent: ast.AST, scope: LexicalScope) -> None:
        kind = type(node)
        if kind in _LEAVES:
            return
        node.parent = parent
        if kind is ast.Name:
            if type(node.ctx) is ast.Load:
                self.chains.append((node, scope))
            else:
                self._bind_target(node, parent, scope)
            return
        if kind is ast.Attribute:
            self._chain(node, scope)
            return
        if kind is ast.Call:
            self.calls.append(Call(node, scope, self))
        elif kind in _BLOCKS:
            self._block(node, scope)
            return
        elif kind is ast.Import or kind is ast.ImportFrom:
            self._import(node, scope)
            return
        elif kind is ast.ExceptHandler and node.name:
            scope.bind(node.name, None)
        elif kind is ast.Global or kind is ast.Nonlocal:
            for name in node.names:
                scope.bind(name, None)
                self.scope.bind(name, None)
        self._walk(node, scope)

    def _chain(self, node: ast.Attribute, scope: LexicalScope) -> None:
        base: Any = node
        if type(node.ctx) is not ast.Load:
            self.stored.add(node.attr)
        while type(base) is ast.Attribute:
            value: Any = base.value
            value.parent = base
            base = value
        if type(base) is ast.Name:
            self.chains.append((node, scope))
            if type(node.ctx) is ast.Store:
                self.stores.append((node, scope))
        else:
            self._visit(base, base.parent, scope)

    def _bind_target(self, node: ast.Name, parent: ast.AST, scope: LexicalScope) -> None:
        value = parent.value if isinstance(parent, (ast.Assign, ast.AnnAssign)) else None
        scope.bind(node.id, value)

    def _block(self, node: Any, scope: LexicalScope) -> None:
        name = getattr(node, "name", "<lambda>")
        inner = LexicalScope(node, scope, f"{scope.name}.{name}" if scope.name else name)
        self.scopes[node] = inner
        if not isinstance(node, ast.Lambda):
            scope.bind(name, node)
        if isinstance(node, ast.ClassDef):
            self.classes.append((node, inner))
            outside = [*node.bases, *(k.value for k in node.keywords), *node.decorator_list]
            body: list[ast.AST] = list(node.body)
        else:
            arguments = node.args
            for argument in ast.iter_child_nodes(arguments):
                if isinstance(argument, ast.arg):
                    inner.bind(argument.arg, None)
            outside = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            if isinstance(node, ast.Lambda):
                body = [node.body]
            else:
                self.functions.append((node, inner))
                outside += node.decorator_list
                body = list(node.body)
        for child in outside:
            self._visit(child, node, scope)
        for statement in body:
            self._visit(statement, node, inner)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: LexicalScope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                target = Import(alias.name, None, 0, node)
                self.imports.append((target, scope))
                if alias.asname:
                    scope.bind(alias.asname, target)
                else:
                    top = alias.name.partition(".")[0]
                    scope.bind(top, Import(top, None, 0, node))
            return
        for alias in node.names:
            target = Import(node.module or "", alias.name, node.level, node)
            self.imports.append((target, scope))
            if alias.name == "*":
                self.stars.append(target)
            else:
                scope.bind(alias.asname or alias.name, target)

    # The meaning of a name.

    def name(self, node: ast.AST, scope: LexicalScope) -> str | None:
        """The canonical name of an expression: `tf.contrib.layers.conv2d`, `builtins.range`."""
        raw = self.resolve(node, scope)
        return None if raw is None else self.canonical(raw)

    def resolve(self, node: ast.AST, scope: LexicalScope) -> str | None:
        """The full name of what an expression stands for, through aliases; None if unknown."""
        if type(node) is ast.Attribute:
            if (scope, node) not in self._names:
                base = self.resolve(node.value, scope)
                self._names[scope, node] = None if base is None else self.member(base, node.attr)
            return self._names[scope, node]
        if type(node) is ast.Name:
            key = (scope, node.id)
            if key not in self._names:
                self._names[key] = None  # for names that are assigned to themselves
                self._names[key] = self._resolve_name(node.id, scope)
            return self._names[key]
        return None

    def _resolve_name(self, name: str, scope: LexicalScope) -> str | None:
        where = scope.find(name)
        if where is None:
            target = self.from_star(name)
            if target is None and any(self.brings(self, star, name) for star in self.stars):
                return None
            return target or f"builtins.{name}"
        if name == "self" or name == "cls":
            return self._own_class(where)
        values = where.bindings[name]
        imports = [value for value in values if isinstance(value, Import)]
        if imports and len(imports) == len(values):
            found = [self.follow(self, value) for value in imports]
            # `try: import a; except ImportError: import b`.
            known = [target for target in found if target]
            return min(known, key=_preference, default=None)
        if len(values) != 1:
            return None
        (value,) = values
        if isinstance(value, _DEFINED):
            return f"@{self.path}::{self.scopes[value].name}"
        if isinstance(value, (ast.Name, ast.Attribute)):
            return self.resolve(value, where)
        return None

    def _own_class(self, scope: LexicalScope) -> str | None:
        classes = (outer for outer in scope.ancestors() if outer.is_class)
        return next((f"@{self.path}::{outer.name}" for outer in classes), None)

    def from_star(self, name: str) -> str | None:
        """The target of a name that `from module import *` may bind; None if that is not known."""
        # Of modules that import all of one another only the first one's answer is whole.
        return self._from_star(name) if self.searched else self._behind_stars(name)

    @kept
    def _behind_stars(self, name: str) -> str | None:
        return self._from_star(name)

    def _from_star(self, name: str) -> str | None:
        if (self, name) in self.searched:
            return None
        self.searched.add((self, name))
        found = []
        try:  # the program's own first: what they lack may be TensorFlow's
            for star in sorted(self.stars, key=lambda star: star.module.startswith("tensorflow")):
                target = self.follow(self, dataclasses.replace(star, name=name)) or ""
                known = target.startswith("@") or "tensorflow" in target
                if known and tables.may_hide(name, self.canonical(target)):
                    found.append(target)
                    if not star.module.startswith("tensorflow"):
                        break
                elif self.brings(self, star, name):
                    break  # a constant, say: it is not TensorFlow's
        finally:
            self.searched.remove((self, name))
        return min(found, key=lambda target: tables.rank(self.canonical(target)), default=None)

    def assigned(self, node: ast.AST, scope: LexicalScope) -> tuple[ast.expr, LexicalScope] | None:
        """The expression that a name was assigned, if it is assigned once; with its scope."""
        if not isinstance(node, ast.Name):
            return None
        where = scope.find(node.id)
        values = where.bindings[node.id] if where else []
        if where and len(values) == 1 and isinstance(values[0], ast.expr):
            return values[0], where
        return None

    def calls_behind(self, node: ast.AST, scope: LexicalScope) -> list[Call]:
        """The calls whose results an expression may be; none if it may be something else too."""
        if isinstance(node, ast.Call):
            return [Call(node, scope, self)]
        where = scope.find(node.id) if isinstance(node, ast.Name) else None
        values = where.bindings[node.id] if where else []  # type: ignore[attr-defined]
        if where is None or not all(isinstance(value, ast.Call) for value in values):
            return []
        return [Call(value, where, self) for value in values]

    def constant(self, node: ast.AST, scope: LexicalScope) -> Any:
        """The number, string, bool or None that an expression is; `UNKNOWN` if it may vary."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand, scope)
            return -value if isinstance(value, (int, float)) else UNKNOWN
        found = self.assigned(node, scope)
        if found and not isinstance(found[0], ast.Name):
            return self.constant(*found)
        return UNKNOWN

    def call(self, node: ast.AST | None, scope: LexicalScope) -> Call | None:
        """The call that an expression is, or that it was assigned."""
        if node is None:
            return None
        found = self.assigned(node, scope)
        if found:
            node, scope = found
        return Call(node, scope, self) if isinstance(node, ast.Call) else None

    def scope_of(self, node: ast.AST) -> LexicalScope:
        """The scope that a node is in."""
        while node not in self.scopes or isinstance(node, ast.expr):
            node = node.parent  # type: ignore[attr-defined]
        return self.scopes[node]


# Nodes without names in them.
_LEAVES = frozenset({ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.alias})


def _preference(target: str) -> tuple[int, int]:
    """The sort key of imports that bind one name: the facade's first, then TensorFlow's."""
    order = ("estimator2strategy", "tensorflow", "")
    return (next(i for i, start in enumerate(order) if target.startswith(start)), -len(target))


class NotebookError(ValueError):
    """A notebook cannot be read, or not be written back as it was; the message says why."""


def parents(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node, from the inside out."""
    while (outer := getattr(node, "parent", None)) is not None:
        yield outer
        node = outer


def walk(node: ast.AST) -> list[ast.AST]:
    """The nodes that `ast.walk` gives, in its order and in half of its time, without contexts."""
    found = [node]
    for each in found:  # grows meanwhile
        for field in _FIELDS[type(each)]:
            value = getattr(each, field, None)
            if type(value) is list:
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """Type of a node -> the fields that may hold others, contexts and operators left out."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        flat = {"arg", "attr", "ctx", "id", "kind", "level", "module", "op", "ops"}
        self[kind] = tuple(field for field in kind._fields if field not in flat)
        return self[kind]


_FIELDS = _Fields()


def names_in(node: ast.AST) -> set[str]:
    """All identifiers in an expression, attributes included."""
    found = (getattr(child, "attr", getattr(child, "id", None)) for child in walk(node))
    return {name for name in found if name is not None}


def arguments_of(function: Function) -> list[str]:
    """Names of the arguments of a `def`, `self` aside."""
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names
