"""Code that a program keeps for another TensorFlow, or another Python, than it is to run on.

    if tf.__version__ < "2":        # is_reached(node, ...): this branch on the facade alone
        y = tf.compat.v1.to_float(x)
    else:
        y = tf.cast(x, "float32")

    try:
        y = tf.compat.v1.to_float(x)    # is_tried(node, ...): the program goes on without it
    except AttributeError:
        y = x

Rules ask here before they report on a name.
"""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Callable, Iterable
from typing import Any

from estimator2strategy.engine.names import tables
from estimator2strategy.tools.reader.source import (
    Call,
    LexicalScope,
    Source,
    arguments_of,
    kept,
    names_in,
    parents,
    walk,
)

# The versions that a program is told, on the facade and on TensorFlow 2.
_TENSORFLOW = {False: "1.15.5", True: "2.16.1"}
_PYTHON: dict[str, Any] = {
    "six.PY2": False,
    "six.PY3": True,
    "six.PY34": True,
    "sys.version_info": (3, 12, 0, "final", 0),
    "sys.version_info.major": 3,
    "sys.version_info.minor": 12,
    "sys.version": "3.12.0",
}
_OUR_VERSION = {"tf.__version__", "tf.VERSION", "tf.version.VERSION"}
# A name in a question for a version whose answer cannot be worked out.
_ASKS = re.compile(
    r"tf_?version|tensorflow_?version|__version__|version_info|is_?tf_?v?[12]|\bPY[23]", re.I
)
_MAY_ASK = re.compile(r"version|PY[23]|hasattr|\bdir\(|tf_?v?[12]\b|['\"]\d+\.\d", re.I)
_VERSIONS = {"LooseVersion", "StrictVersion", "Version", "parse_version", "parse"}
_DEPTH = 12

_HASATTR = re.compile(r"(?P<negated>not )?hasattr\((?P<owner>[\w.]+), ['\"](?P<name>\w+)['\"]\)$")

# Methods that Python 3 does not call by itself.
_PYTHON_2_METHODS = re.compile(r"__(i|r)?div__|__nonzero__|__unicode__|__[gs]etslice__")

# The errors by which a name shows that it is gone.
MISSING = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "NameError"})
ANY = MISSING | {"Exception", "BaseException", "NotFoundError", ""}


def is_tried(node: ast.AST, errors: Iterable[str] = MISSING) -> bool:
    """True if a `try` around a node catches one of these errors, and does not raise it again."""
    inner = node
    for outer in parents(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False  # it runs when it is called, elsewhere
        if isinstance(outer, ast.Try) and inner in outer.body:
            for handler in outer.handlers:
                caught = names_in(handler.type) if handler.type else {""}
                raises = any(isinstance(statement, ast.Raise) for statement in handler.body)
                if not raises and not caught.isdisjoint(errors):
                    return True
        inner = outer
    return False


def is_expendable(node: ast.AST) -> bool:
    """True if a program can do without a name: a `try` is around it, or comes before it.

    So it can after `if hasattr(...)` of the name, or in the `else` of that of another one.
    """
    return (
        is_tried(node, ANY)
        or any(
            isinstance(outer, ast.ExceptHandler)
            and not (names_in(outer.type) if outer.type else {""}).isdisjoint(MISSING)
            for outer in parents(node)
        )
        or _is_asked_for(node)
    )


def _is_asked_for(node: ast.AST) -> bool:
    """True for `x.new` and `x.old` in `if hasattr(x, "new"): x.new() else: x.old()`."""
    if not isinstance(node, ast.Attribute):
        return False
    owner = ast.unparse(node.value)
    inner: ast.AST = node
    for outer in parents(node):
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            then = outer.body if isinstance(outer.body, list) else [outer.body]
            holds, test = inner in then, outer.test
            both = holds and isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
            for part in getattr(test, "values", []) if both else [test]:
                asked = _HASATTR.match(ast.unparse(part))
                if asked and asked["owner"] == owner:
                    has = holds != bool(asked["negated"])
                    if has == (asked["name"] == node.attr):
                        return True
        inner = outer
    return False


def is_reached(node: ast.AST, source: Source, *, on_tensorflow_2: bool) -> bool:
    """False if a question for a version stands around a node, and the answer leads elsewhere.

    It is False, too, where such a question cannot be answered here: the program knows of versions;
    and after the `except AttributeError` of a `try` whose names of TensorFlow are all there; and in
    a method like `__div__` that nothing else in the file names.
    """
    if not _may_ask(source):
        return True
    inner = node
    for outer in parents(node):
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            then = outer.body if isinstance(outer.body, list) else [outer.body]
            holds = answer(source, outer.test, on_tensorflow_2)
            if holds is _ASKED or (holds is not None and holds != (inner in then)):
                return False
        elif isinstance(outer, ast.BoolOp) and inner in outer.values:
            # `is_tf2() and ...` is an `if` as well.
            for operand in outer.values[: outer.values.index(inner)]:
                holds = answer(source, operand, on_tensorflow_2)
                if holds is _ASKED or holds is isinstance(outer.op, ast.Or):
                    return False
        elif isinstance(outer, ast.FunctionDef) and _PYTHON_2_METHODS.fullmatch(outer.name):
            if _python_2_methods(source)[outer.name] == 1:
                return False
        elif isinstance(inner, ast.ExceptHandler) and isinstance(outer, ast.Try):
            caught = names_in(inner.type) if inner.type else {""}
            if not caught.isdisjoint(MISSING) and succeeds(source, outer, on_tensorflow_2):
                return False
        inner = outer
    return True


@kept
def _may_ask(source: Source) -> bool:
    """True if a file may ask for a version, do without a name, or have methods of Python 2."""
    return bool(
        "except" in source.text or _MAY_ASK.search(source.text) or _python_2_methods(source)
    )


@kept
def _python_2_methods(source: Source) -> collections.Counter[str]:
    """How often a file names each method that Python 3 does not call by itself."""
    found = re.finditer(rf"\b({_PYTHON_2_METHODS.pattern})\b", source.text)
    return collections.Counter(match[0] for match in found)


@kept
def succeeds(source: Source, tried: ast.Try, on_tensorflow_2: bool) -> bool:
    """True if a `try` uses names of TensorFlow, imports nothing, and the names are all there."""
    reader, found = _Reader(source, on_tensorflow_2), False
    for node in (part for statement in tried.body for part in walk(statement)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return False
        if isinstance(node, ast.Attribute) and not isinstance(next(parents(node)), ast.Attribute):
            scope = source.scope_of(node)
            name = source.name(node, scope)
            if name is not None and name.startswith("tf."):
                try:
                    found = reader.has(name, source.resolve(node, scope))
                except LookupError:
                    return False
                if not found:
                    return False
    return found


def version(on_tensorflow_2: bool) -> str:
    """The version of TensorFlow that a program is told."""
    return _TENSORFLOW[on_tensorflow_2]


_ASKED: Any = object()


@kept
def answer(source: Source, test: ast.expr, on_tensorflow_2: bool) -> Any:
    """True if a condition about versions holds; `_ASKED` if nobody can tell, None for others."""
    text = ast.unparse(test)
    if not _MAY_ASK.search(text):
        return None
    try:
        scope = source.scope_of(test)
        return bool(_Reader(source, on_tensorflow_2).value(test, scope))
    except (LookupError, TypeError, ValueError, AttributeError):
        return _ASKED if _ASKS.search(text) else None


class _Reader:
    """Works out expressions about versions, without running them.

    All methods raise LookupError for what is not known.
    """

    def __init__(self, source: Source, on_tensorflow_2: bool):
        self._source, self._on_tensorflow_2 = source, on_tensorflow_2
        self._depth = 0
        # The arguments of a function of the program, by its scope and their names.
        self._arguments: dict[tuple[LexicalScope, str], Any] = {}

    def value(self, node: ast.AST, scope: LexicalScope) -> Any:
        work = _WORK.get(type(node))
        if work is None or self._depth > _DEPTH:
            raise LookupError
        self._depth += 1
        try:
            return work(self, node, scope)
        finally:
            self._depth -= 1

    def name(self, node: Any, scope: LexicalScope) -> Any:
        name = self._source.name(node, scope)
        if name in _OUR_VERSION:
            return _TENSORFLOW[self._on_tensorflow_2]
        if name in _PYTHON:
            return _PYTHON[name]
        found = self._source.assigned(node, scope)
        if found is None:
            return self._arguments[scope, ast.unparse(node)]
        return self.value(*found)

    def several(self, node: Any, scope: LexicalScope) -> Any:
        return tuple(self.value(element, scope) for element in node.elts)

    def subscript(self, node: Any, scope: LexicalScope) -> Any:
        return self.value(node.value, scope)[self.value(node.slice, scope)]

    def part(self, node: Any, scope: LexicalScope) -> Any:
        ends = (node.lower, node.upper, node.step)
        return slice(*(end and self.value(end, scope) for end in ends))

    def negation(self, node: Any, scope: LexicalScope) -> Any:
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return not value
        if isinstance(node.op, ast.USub):
            return -value
        raise LookupError

    def logic(self, node: Any, scope: LexicalScope) -> bool:
        """`and` and `or` of what is known: one side may decide alone."""
        decisive = isinstance(node.op, ast.Or)
        unknown = False
        for part in node.values:
            try:
                if bool(self.value(part, scope)) == decisive:
                    return decisive
            except (LookupError, TypeError, ValueError, AttributeError):
                unknown = True
        if unknown:
            raise LookupError
        return not decisive

    def comparison(self, node: Any, scope: LexicalScope) -> bool:
        first, last = node.ops[0], node.comparators[0]
        listing = Call(last, scope, self._source) if isinstance(last, ast.Call) else None
        if listing is not None and listing.name == "builtins.dir" and len(last.args) == 1:
            if isinstance(first, (ast.In, ast.NotIn)):
                return self._lists(last.args[0], node.left, scope) == isinstance(first, ast.In)
            raise LookupError
        left = self.value(node.left, scope)
        for operator, term in zip(node.ops, node.comparators, strict=True):
            right = self.value(term, scope)
            if not _COMPARED[type(operator)](left, right):
                return False
            left = right
        return True

    def call(self, node: Any, scope: LexicalScope) -> Any:
        call = Call(node, scope, self._source)
        if call.name == "builtins.hasattr":
            owner, attribute = node.args
            return self._lists(owner, attribute, scope)
        arguments = [self.value(a, scope) for a in node.args if not isinstance(a, ast.Name)]
        if call.name in _FUNCTIONS and len(arguments) == 1:
            return _FUNCTIONS[call.name](arguments[0])
        if call.name == "builtins.map" and len(arguments) == 1:
            return tuple(map(int, arguments[0]))
        if call.last in _VERSIONS and len(node.args) == 1:
            return tuple(int(part) for part in re.findall(r"\d+", self.value(node.args[0], scope)))
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("split", "startswith"):
            return getattr(self.value(node.func.value, scope), node.func.attr)(*arguments)
        return self._returned(node, scope)

    def _returned(self, node: ast.Call, scope: LexicalScope) -> Any:
        """The value of a call of the program's own function, if that is nothing but a `return`."""
        where = scope.find(node.func.id) if isinstance(node.func, ast.Name) else None
        bindings = where.bindings[node.func.id] if where else []  # type: ignore[attr-defined]
        function = bindings[0] if len(bindings) == 1 else None
        if not isinstance(function, ast.FunctionDef) or node.keywords:
            raise LookupError
        *before, last = function.body
        inner, names = self._source.scopes[function], arguments_of(function)
        if not isinstance(last, ast.Return) or last.value is None or len(names) != len(node.args):
            raise LookupError
        if any(not isinstance(part, ast.Expr) for part in before):  # a docstring is one
            raise LookupError
        values = [self.value(argument, scope) for argument in node.args]
        self._arguments |= {(inner, name): value for name, value in zip(names, values, strict=True)}
        return self.value(last.value, inner)

    def _lists(self, owner: ast.expr, attribute: ast.expr, scope: LexicalScope) -> bool:
        """True if TensorFlow, or a module of it, has an attribute."""
        name = self._source.name(owner, scope)
        if name is None:
            raise LookupError
        return self.has(
            f"{name}.{self.value(attribute, scope)}", self._source.resolve(owner, scope)
        )

    def has(self, name: str, raw: str | None) -> bool:
        """True if TensorFlow has a name, when it is reached by `raw`."""
        if raw is None or not name.startswith("tf."):
            raise LookupError
        if not self._on_tensorflow_2 or raw.startswith("estimator2strategy"):
            return tables.served(name) is not None
        if name.startswith(("tf.contrib", "tf.estimator")):
            return False
        there = tables.exists(name, "v1" if raw.startswith("tensorflow.compat.v1") else "v2")
        if there is None:
            raise LookupError
        return there


_WORK: dict[type, Callable[[_Reader, Any, LexicalScope], Any]] = {
    ast.Constant: lambda reader, node, scope: node.value,
    ast.Name: _Reader.name,
    ast.Attribute: _Reader.name,
    ast.Tuple: _Reader.several,
    ast.List: _Reader.several,
    ast.Subscript: _Reader.subscript,
    ast.Slice: _Reader.part,
    ast.UnaryOp: _Reader.negation,
    ast.BoolOp: _Reader.logic,
    ast.Compare: _Reader.comparison,
    ast.Call: _Reader.call,
}
_COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_FUNCTIONS: dict[str | None, Callable[[Any], Any]] = {
    "builtins.int": int,
    "builtins.float": float,
    "builtins.str": str,
    "builtins.tuple": tuple,
    "builtins.list": tuple,
    "builtins.len": len,
}
