"""Values that Python 2 had: a list where there is an iterator now, an int where a quotient is."""

import ast
from collections.abc import Iterator

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.lost_names import unguarded
from estimator2strategy.tools.reader.source import (
    Call,
    LexicalScope,
    Source,
    arguments_of,
    parents,
)

_ITERATORS = {"builtins.map", "builtins.filter", "builtins.zip"}
_RANGES = {*_ITERATORS, "builtins.range"}
_OF_LISTS = {"append", "extend", "insert", "pop", "remove", "reverse", "sort"}
_OF_SEQUENCES = {"count", "index"}
_SHUFFLES = {"random.shuffle", "numpy.random.shuffle"}
_VIEWS = {"items", "values", "keys"}
# An Index of pandas, which `DataFrame.keys()` gives, has the others.
_OF_NO_KEYS = {"extend", "pop", "remove", "reverse", "sort"}
# Argument -> (its position, functions that take no iterator for it, and no view of a dict).
_TAKE_NO_VIEWS = {
    "record_defaults": (1, "tf.decode_csv"),
    "boundaries": (1, "tf.feature_column.bucketized_column"),
    "values": (0, "tf.stack tf.concat"),
    "value": (0, "tf.constant tf.convert_to_tensor"),
    "initial_value": (0, "tf.Variable"),
    "input_tensor": (0, "tf.reduce_max tf.reduce_mean tf.reduce_min tf.reduce_prod tf.reduce_sum"),
    "input": (0, "tf.expand_dims tf.tile"),
    "tensor": (0, "tf.reshape"),
    "shape": (1, "tf.reshape"),
    "x": (0, "tf.cast"),
    "perm": (1, "tf.transpose"),
    "multiples": (1, "tf.tile"),
    "indices": (0, "tf.SparseTensor tf.one_hot"),
    "ids": (1, "tf.nn.embedding_lookup"),
    "string_tensor": (0, "tf.train.string_input_producer"),
    "tensor_list": (0, "tf.train.slice_input_producer"),
    "t_list": (0, "tf.clip_by_global_norm"),
    "arrays": (0, "numpy.concatenate numpy.hstack numpy.stack numpy.vstack"),
}
# The same for views, too.
_TAKE_NO_ITERATORS = {
    "vocabulary_list": (1, "tf.feature_column.categorical_column_with_vocabulary_list"),
    "tensors": (0, "tf.data.Dataset.from_tensor_slices"),
    "cells": (0, "tf.nn.rnn_cell.MultiRNNCell tf.contrib.rnn.MultiRNNCell"),
}
# Function -> (position, argument, True if a view will do).
_TAKE_LISTS: dict[str, list[tuple[int, str, bool]]] = {}
for _table, _views in ((_TAKE_NO_VIEWS, False), (_TAKE_NO_ITERATORS, True)):
    for _argument, (_position, _functions) in _table.items():
        for _function in _functions.split():
            _TAKE_LISTS.setdefault(_function, []).append((_position, _argument, _views))
# Methods that take items out of a dict.
_SHRINK = {"clear", "pop", "popitem"}


def python2_lists(source: Source, context: Context) -> Iterator[Hit]:
    for node, kinds, use in (*_expressions(source), *_calls(source), *_loops(source)):
        made = _made_by(node, source, kinds)
        if made is not None and unguarded(node):
            yield Hit(node, f"{made}() makes no list in Python 3, and cannot be {use}")


def _expressions(source: Source) -> Iterator[tuple[ast.AST, set[str], str]]:
    """Operands and containers: (node, what it must not be made by, what is done with it)."""
    for node in source.all_of(ast.BinOp, ast.Subscript):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            for operand, other in ((node.left, node.right), (node.right, node.left)):
                # An array takes a range, and neither takes an iterator.
                is_list = isinstance(other, (ast.List, ast.ListComp))
                listed = is_list or _made_by(other, source, _RANGES) is not None
                yield operand, _RANGES if listed else _ITERATORS, "added"
        elif isinstance(node, ast.Subscript):
            yield node.value, _ITERATORS, "indexed"
            yield node.slice, _ITERATORS, "an index"
            # `x.keys()` may also be the Index of a DataFrame.
            if isinstance(node.value, ast.Call):
                yield node.value, {"items", "values"}, "indexed"


def _calls(source: Source) -> Iterator[tuple[ast.AST, set[str], str]]:
    for call in source.calls:
        first = call.argument("", 0)
        if isinstance(call.node.func, ast.Attribute):
            if call.last in _OF_LISTS:
                views = _VIEWS if call.last in _OF_NO_KEYS else _VIEWS - {"keys"}
                yield call.node.func.value, _RANGES | views, f"used with .{call.last}()"
            elif call.last in _OF_SEQUENCES:
                yield call.node.func.value, _ITERATORS, f"used with .{call.last}()"
            if call.last == "run" and first is not None and "tensorflow" in source.modules:
                yield first, _ITERATORS, "fetched"
        if call.name in _SHUFFLES and first is not None:
            yield first, _RANGES | _VIEWS, "shuffled"
        for position, argument, takes_views in _TAKE_LISTS.get(call.name or "", []):
            given = call.argument(argument, position)
            if given is not None:
                yield given, _ITERATORS if takes_views else _ITERATORS | _VIEWS, f"the {argument}"
        if call.name == "builtins.len" and first is not None:
            yield first, _ITERATORS, "counted"


def _loops(source: Source) -> Iterator[tuple[ast.AST, set[str], str]]:
    """Dicts that lose items in a loop over a view of them, which ends the loop with an error."""
    # `keys` of a table or of the environment is a copy.
    views = _VIEWS - {"keys"} if "pandas" in source.modules else _VIEWS
    for loop in source.all_of(ast.For):
        view = getattr(loop.iter, "func", None)
        if not isinstance(view, ast.Attribute):
            continue
        of = ast.unparse(view.value)
        if of != "os.environ" and any(_shrinks(node, of, loop) for node in _inside(loop)):
            yield loop.iter, views, f"looped over while items are taken out of {of}"


def _inside(loop: ast.For) -> Iterator[ast.AST]:
    """The nodes that a loop runs itself: not the functions that it makes."""
    todo: list[ast.AST] = list(loop.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)


def _shrinks(node: ast.AST, of: str, loop: ast.For) -> bool:
    """True if a statement takes an item out of a dict, and the loop goes on after it."""
    if isinstance(node, ast.Delete):
        taken = [t for t in node.targets if isinstance(t, ast.Subscript)]
        if not any(ast.unparse(t.value) == of for t in taken):
            return False
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if not isinstance(function, ast.Attribute) or function.attr not in _SHRINK:
            return False
        if ast.unparse(function.value) != of:
            return False
    else:
        return False
    inner: ast.AST = node
    for outer in parents(node):
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(outer, block, ())
            if isinstance(statements, list) and inner in statements:
                after = statements[statements.index(inner) + 1 :]
                if any(isinstance(s, (ast.Break, ast.Return, ast.Raise)) for s in after):
                    return False
                if any(_stores(s, of) for s in statements):
                    return False
        if outer is loop:
            return True
        inner = outer
    return False


def _stores(statement: ast.AST, of: str) -> bool:
    """True if a statement puts an item in, or gives the name another dict."""
    targets = getattr(statement, "targets", ()) if isinstance(statement, ast.Assign) else ()
    return any(ast.unparse(getattr(t, "value", t)) == of for t in targets)


def _made_by(node: ast.AST, source: Source, makers: set[str]) -> str | None:
    """The one of `makers` whose result an expression is for certain; None if it may not be one."""
    if not hasattr(node, "parent"):
        return None
    scope = source.scope_of(node)
    if isinstance(node, ast.Name):
        where = scope.find(node.id)
        # A name of another function's may have got a list by the time that this one runs.
        values = where.bindings[node.id] if where is scope else ()
        made = {_called(value, where, source, makers) for value in values}
        return made.pop() if len(made) == 1 else None
    if isinstance(node, ast.Subscript):
        made = {_called(value, place, source, makers) for value, place in _params(node, source)}
        return made.pop() if len(made) == 1 else None
    return _called(node, scope, source, makers)


def _params(node: ast.Subscript, source: Source) -> list[tuple[ast.AST | None, LexicalScope]]:
    """What the Estimators of a file give for `params["units"]`; nothing if it may be set again."""
    function = source.scope_of(node).function
    key = getattr(node.slice, "value", None)
    if getattr(node.value, "id", None) != "params" or not isinstance(key, str):
        return []
    if function is None or "params" not in arguments_of(function):
        return []
    for other in source.all_of(ast.Subscript):
        if isinstance(other.ctx, ast.Store) and getattr(other.slice, "value", None) == key:
            return []
    found: list[tuple[ast.AST | None, LexicalScope]] = []
    for call in source.calls:
        given = call.argument("params") if call.last.endswith("Estimator") else None
        behind = source.assigned(given, call.scope) if given is not None else None
        given, place = behind or (given, call.scope)
        if isinstance(given, ast.Dict):
            keys = [getattr(k, "value", None) for k in given.keys]
            found.append((given.values[keys.index(key)] if key in keys else None, place))
        elif given is not None:
            found.append((None, place))
    return found


def _called(
    value: object, scope: LexicalScope | None, source: Source, makers: set[str]
) -> str | None:
    if not isinstance(value, ast.Call) or scope is None:
        return None
    name = Call(value, scope, source).name
    if name in makers:
        return name.removeprefix("builtins.")
    if not isinstance(value.func, ast.Attribute) or value.args or value.keywords:
        return None
    method = value.func.attr
    return f".{method}" if method in makers else None


# Function -> the position and name of what must be whole, or a sequence of such; None: every one.
_WHOLE: dict[str, tuple[int, str] | None] = {
    "builtins.range": None,
    "numpy.empty": (0, "shape"),
    "numpy.eye": (0, "N"),
    "numpy.full": (0, "shape"),
    "numpy.identity": (0, "n"),
    "numpy.linspace": (2, "num"),
    "numpy.ones": (0, "shape"),
    "numpy.random.choice": (1, "size"),
    "numpy.random.normal": (2, "size"),
    "numpy.random.rand": None,
    "numpy.random.randint": (2, "size"),
    "numpy.random.randn": None,
    "numpy.random.uniform": (2, "size"),
    "numpy.reshape": (1, "newshape"),
    "numpy.tile": (1, "reps"),
    "numpy.zeros": (0, "shape"),
    "random.sample": (1, "k"),
    "tf.fill": (0, "dims"),
    "tf.one_hot": (1, "depth"),
    "tf.random_normal": (0, "shape"),
    "tf.random_uniform": (0, "shape"),
    "tf.reshape": (1, "shape"),
    "tf.tile": (1, "multiples"),
    "tf.truncated_normal": (0, "shape"),
}
_KEPT = (ast.Add, ast.Sub, ast.Mult)


def python2_division(source: Source, context: Context) -> Iterator[Hit]:
    for node, where in (*_arguments(source), *_operands(source)):
        if not hasattr(node, "parent") or not unguarded(node):
            continue
        if _is_quotient(node, source.scope_of(node), source):
            yield Hit(node, f"`{_short(node)}` is a float in Python 3, and {where}")


def _arguments(source: Source) -> Iterator[tuple[ast.expr, str]]:
    for call in source.calls:
        if call.name not in _WHOLE:
            continue
        place = _WHOLE[call.name]
        given = call.node.args if place is None else [call.argument(place[1], place[0])]
        for value in given:
            parts = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
            for part in parts:
                if part is not None:
                    yield part, f"{call.last} takes whole numbers"


def _operands(source: Source) -> Iterator[tuple[ast.expr, str]]:
    for node in source.all_of(ast.BinOp, ast.Subscript):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for part, other in ((node.left, node.right), (node.right, node.left)):
                if _is_text(other) or (_is_list(other) and _is_counted(part, source)):
                    yield part, "a sequence is repeated a whole number of times"
        # The labels of a Series may be floats.
        elif isinstance(node, ast.Subscript) and "pandas" not in source.modules:
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for part in parts:
                if isinstance(part, ast.Slice):
                    for bound in (part.lower, part.upper, part.step):
                        if bound is not None:
                            yield bound, "slices are bounded by whole numbers"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _is_list(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.ListComp))


def _is_counted(node: ast.expr, source: Source) -> bool:
    """True for `len(x) / 2`; `x / 2` may be an array, by which a list is multiplied in truth."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.left, ast.Call):
        return False
    return source.name(node.left.func, source.scope_of(node)) in ("builtins.len", "builtins.int")


def _is_quotient(node: ast.expr, scope: LexicalScope, source: Source) -> bool:
    """True if an expression is the result of `/` for certain, sums and products with it too."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div):
            return True
        return isinstance(node.op, _KEPT) and any(
            _is_quotient(part, scope, source) for part in (node.left, node.right)
        )
    if isinstance(node, ast.Name):
        values = scope.bindings.get(node.id, ())
        return bool(values) and all(
            isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) for value in values
        )
    return False


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
