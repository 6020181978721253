"""Quotients of Python 2, which were whole numbers, where only a whole number will do."""

import ast
from collections.abc import Iterator

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.python2_names import unguarded
from estimator2strategy.tools.reader.estimator_programs import all_of
from estimator2strategy.tools.reader.source import LexicalScope, Source

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


def find(source, context):
    for node, where in (*_arguments(source), *_expressions(source)):
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


def _expressions(source: Source) -> Iterator[tuple[ast.expr, str]]:
    for node in all_of(source, ast.BinOp, ast.Subscript):
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
