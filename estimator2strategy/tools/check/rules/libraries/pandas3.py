"""Tables that mean something else since pandas 3."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import library_objects, unreached
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import LexicalScope, Source, walk

_INDEXERS = {"at", "iat", "iloc", "loc"}


def chained_assignment(source: Source, context: Context) -> Iterator[Hit]:
    """Changes of a column that pandas 3 makes in a copy of it."""
    if "pandas" not in source.modules:
        return
    for node in source.all_of(ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            column = _column(node.value, source, context.project)
            if column is not None:
                yield Hit(node, _message(column))
    for call in source.calls:
        if isinstance(call.node.func, ast.Attribute) and call.value("inplace") is True:
            column = _column(call.node.func.value, source, context.project)
            if column is not None:
                yield Hit(call.node, _message(column))


def _column(node: ast.expr, source: Source, project: Project) -> ast.Subscript | None:
    """The `table['a']` that a statement changes; None if it is no column of a table."""
    if isinstance(node, ast.Attribute) and node.attr in _INDEXERS:
        node = node.value
    if not isinstance(node, ast.Subscript):
        return None
    of = library_objects.class_of(node, source.scope_of(node), source, project)
    return node if of == "pandas.Series" else None


def _message(column: ast.expr) -> str:
    return f"pandas 3: this changes a copy, and {ast.unparse(column)} stays as it was"


# Readers that give the columns the names of a file's first line.
_READERS = {f"pandas.read_{kind}" for kind in ("csv", "excel", "table")}
# Their arguments that give other names.
_OTHER_NAMES = {"header", "names", "prefix"}
# Methods of tables whose results have the same columns, or some of them.
_SAME_NAMES = {
    "copy", "drop", "drop_duplicates", "dropna", "fillna", "head", "query", "replace", "sample",
    "sort_index", "sort_values", "tail",
}  # fmt: skip


def label_for_position(source: Source, context: Context) -> Iterator[Hit]:
    """Items of a table's row by their place, which pandas 3 takes for labels."""
    if "pandas" not in source.modules or _names_columns(source):
        return
    for row, body, readers in _rows(source, context.project):
        inner = [node for part in body for node in walk(part)]
        names = [n for n in inner if isinstance(n, ast.Name) and n.id == row]
        if any(isinstance(name.ctx, ast.Store) for name in names) or any(
            isinstance(node, ast.arg) and node.arg == row for node in inner
        ):
            continue  # it is something else, too
        for node in (each for each in inner if isinstance(each, ast.Subscript)):
            place = _place(node)
            if place is None or node.value not in names or unreached.is_tried(node, ["KeyError"]):
                continue
            message = f"pandas 3: {row}[{place}] is the item of the label {place}"
            fix = f"Today: {row}.iloc[{place}]."
            if "pandas.read_excel" in readers:  # a cell of the first line may be a number
                yield Hit(node, f"{message}, if any", severity=Severity.WARNING, fix=fix)
            else:
                yield Hit(node, f"{message}, and no column has it", fix=fix)


def _rows(source: Source, project: Project) -> Iterator[tuple[str, Sequence[ast.AST], set[str]]]:
    """Loops over rows: the name of the row, what is done with it, what has read the table."""
    loops: list[ast.For | ast.comprehension] = []
    loops += source.all_of(ast.For)
    loops += source.all_of(ast.comprehension)
    for loop in loops:
        over = loop.iter.func if isinstance(loop.iter, ast.Call) else None
        if not isinstance(over, ast.Attribute) or over.attr != "iterrows":
            continue
        row = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else None
        readers = _readers(over.value, source.scope_of(over), source, project)
        if isinstance(row, ast.Name) and readers:
            body = [*loop.body] if isinstance(loop, ast.For) else _around(loop)
            yield row.id, body, readers


def _around(loop: ast.comprehension) -> Sequence[ast.AST]:
    """The parts of a comprehension that use the items of a loop."""
    made = loop.parent  # type: ignore[attr-defined]
    parts = [getattr(made, field, None) for field in ("elt", "key", "value")]
    return [part for part in [*parts, *loop.ifs] if part is not None]


def _readers(node: ast.AST, scope: LexicalScope, source: Source, project: Project) -> set[str]:
    """The functions that read a table with the names of its columns; none for other tables."""
    if library_objects.class_of(node, scope, source, project) != "pandas.DataFrame":
        return set()
    left = source.calls_behind(node, scope)
    seen: set[ast.AST] = set()
    found = set()
    while left:
        call = left.pop()
        if call.node in seen:
            continue  # `table = table.dropna()`
        seen.add(call.node)
        if call.name in _READERS:
            if call.is_open or {k.arg for k in call.node.keywords} & _OTHER_NAMES:
                return set()
            found.add(call.name)
            continue
        function = call.node.func
        before = (
            source.calls_behind(function.value, call.scope)
            if isinstance(function, ast.Attribute) and call.last in _SAME_NAMES
            else []
        )
        if not before:
            return set()
        left += before
    return found


def _names_columns(source: Source) -> bool:
    """True if a file gives the columns of a table names of its own."""
    return any(store.attr == "columns" for store, _ in source.stores)


def _place(node: ast.Subscript) -> int | None:
    """The number in `row[0]` and `row[-1]`; None for other items, and for those that are set."""
    if not isinstance(node.ctx, ast.Load):
        return None
    index = node.slice
    sign = -1 if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) else 1
    value = getattr(index.operand if sign < 0 else index, "value", None)  # type: ignore[attr-defined]
    return sign * value if type(value) is int else None
