"""One file as codemods see it: what its names stand for, and the nodes to edit.

    module = Module.parse(path, text)
    for call in module.calls("tf.to_float"):
        yield module.replace(call.node, f"tf.cast({module.written(call.node.args[0])}, ...)")

Names are told by `check/source.py`, which reads an `ast`. The edits are made on libcst's tree,
which keeps comments and white space; a node of one is found in the other by its place.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from estimator2strategy.tf1.facade import name_table as facade
from estimator2strategy.tools.check.checking import MOST_TOGETHER
from estimator2strategy.tools.check.project import Project
from estimator2strategy.tools.check.source import (
    Call,
    LexicalScope,
    Source,
    parse,
)
from estimator2strategy.tools.migrate.change import Change

# The modules that `tf` may stand for.
TENSORFLOW = ("tensorflow", "tensorflow.compat.v1", "estimator2strategy.tf1")
# Stands in the place of a statement that goes, until its line is taken out of the text.
REMOVED = "__removed_by_e2s_migrate__"
_FOR_LINTERS = re.compile(r"#\s*(noqa|pylint:|type:|pytype:|mypy:)")
_Place = tuple[int, int, int, int]
_NeededImport = tuple[str, str | None, str | None]


@dataclasses.dataclass(frozen=True)
class Facts:
    """Facts about the files of a program together.

    Attributes:
        is_legacy: Some file uses names that only TF 1.x had.
        has_sessions: Some file runs a Session of its own.
        restores_by_name: Some file gives `tf.train.init_from_checkpoint` names of variables.
        has_strategies: Some file makes a `tf.distribute` strategy.
        looks_up_rows: Some file looks up rows of an embedding.
        of_specs: The names of all arguments of EstimatorSpecs.
        imported: The parts of the names of modules, and the names, that the files import; none of
            this package.
    """

    is_legacy: bool = False
    has_sessions: bool = False
    restores_by_name: bool = False
    has_strategies: bool = False
    looks_up_rows: bool = False
    of_specs: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()

    def __or__(self, other: Facts) -> Facts:
        """The facts of a program in two parts."""
        both = {
            field.name: getattr(self, field.name) | getattr(other, field.name)
            for field in dataclasses.fields(self)
        }
        return Facts(**both)


class Module:
    """A parsed file.

    Attributes:
        text: Its text.
        source: Its scopes, calls and names.
        facts: Facts about the program that it is part of.
    """

    def __init__(self, source: Source, facts: Facts):
        self.text, self.source, self.facts = source.text, source, facts
        self.project = Project([source], MOST_TOGETHER)

    @classmethod
    def parse(cls, path: str, text: str, facts: Facts = Facts()) -> Module:
        """Reads a file's text.

        Raises:
            SyntaxError, ValueError, RecursionError: It is no Python 3.
        """
        return cls(parse(path, path, text), facts)

    # The contents of the module.

    def calls(self, *names: str) -> Iterator[Call]:
        """The calls of functions with these legacy names ("tf.to_float"); all without names."""
        for call in self.source.calls:
            if not names or (call.name and legacy_name(call.name) in names):
                yield call

    def uses(self, *prefixes: str) -> Iterator[tuple[ast.expr, str]]:
        """Dotted names that stand for something of TensorFlow, with their legacy names.

        Only the longest are given; with `prefixes`, those that are below one of them. A name that
        is written without a dot is not among them.
        """
        for node, scope in self.source.chains:
            if isinstance(node, ast.Attribute):
                name = self.name(node, scope)
                if name and (not prefixes or any(is_below(name, prefix) for prefix in prefixes)):
                    yield node, name

    def name(self, node: ast.AST, scope: LexicalScope | None = None) -> str | None:
        """The legacy name of an expression: "tf.flags.FLAGS"; None for what is not TensorFlow's."""
        name = self.source.name(node, scope or self.source.scope_of(node))
        return legacy_name(name) if name and name.startswith("tf.") else None

    def part(self, node: ast.expr, name: str) -> ast.expr | None:
        """The part of a dotted name, as it is written, that stands for the legacy `name`."""
        scope = self.source.scope_of(node)
        while isinstance(node, ast.Attribute):
            if self.name(node, scope) == name:
                return node
            node = node.value
        return None

    def assigned_to(self, name: str) -> ast.Assign | None:
        """The statement at the top of the file that gives a legacy name another: `f = tf.flags`."""
        for node in self.source.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if (
                    isinstance(target, ast.Name)
                    and self.name(node.value, self.source.scope) == name
                ):
                    return node
        return None

    @functools.cached_property
    def tf(self) -> str | None:
        """The name by which the file reaches `tensorflow`: "tf"."""
        for name, values in self.source.scope.bindings.items():
            if len(values) == 1 or name == "tf":
                known = self.source.resolve(ast.Name(name, ast.Load()), self.source.scope)
                if known in TENSORFLOW:
                    return name
        return None

    def bound(self, module: str, name: str | None = None) -> str | None:
        """The name that the top of the file binds to a module, or to what is in it."""
        full = f"{module}.{name}" if name else module
        for bound, values in self.source.scope.bindings.items():
            if len(values) == 1 and not self.is_shadowed(bound):
                known = self.source.resolve(ast.Name(bound, ast.Load()), self.source.scope)
                if known == full:
                    return bound
        return None

    def is_shadowed(self, name: str) -> bool:
        """True if a function or a class binds a name that the file binds too."""
        scopes = self.source.scopes.values()
        return any(name in scope.bindings for scope in scopes if scope is not self.source.scope)

    def free(self, *names: str) -> str:
        """The first of these names that nothing in the file binds."""
        taken = {name for scope in self.source.scopes.values() for name in scope.bindings}
        taken |= {node.id for node, _ in self.source.chains if isinstance(node, ast.Name)}
        for name in names:
            if name not in taken:
                return name
        return self.free(f"{names[-1]}_")

    def needed(self, module: str, name: str | None, *aliases: str) -> tuple[str, _NeededImport]:
        """The spelling of `name` of `module` (or of the module), and the import that binds it.

        The import is the one that is there already, or a new one by the first free alias.
        """
        last = name or module.rpartition(".")[2]
        bound = self.bound(module, name) or self.free(last, *aliases, f"_{last}")
        return bound, (module, name, None if bound == (name or module) else bound)

    def written(self, node: ast.AST) -> str:
        """The text of a node."""
        start_line, start, end_line, end = self._place(node)
        lines = self.lines[start_line - 1 : end_line]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][start:]
        return "".join(lines)

    def written_with(self, node: ast.AST, parts: Mapping[ast.AST, str]) -> str:
        """The text of a node, with other texts in the place of some nodes in it."""
        first, start, _, _ = self._place(node)
        text = self.written(node)
        offsets = [0]
        for line in io.StringIO(text, newline=""):
            offsets.append(offsets[-1] + len(line))

        def at(line: int, column: int) -> int:
            return offsets[line - first] + column - (start if line == first else 0)

        for part in sorted(parts, key=self._place, reverse=True):
            place = self._place(part)
            text = text[: at(*place[:2])] + parts[part] + text[at(*place[2:]) :]
        return text

    @functools.cached_property
    def lines(self) -> list[str]:
        """Lines with their ends, counted as Python counts them."""
        return list(io.StringIO(self.text, newline=""))

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that a node is in."""
        while not isinstance(node, ast.stmt):
            node = node.parent  # type: ignore[attr-defined]
        return node

    # Edits.

    def replace(self, node: ast.AST, text: str, imports: Iterable[_NeededImport] = ()) -> Change:
        """The expression `text` in the place of an expression."""
        old = self.cst(node)
        text = self._dedented(self.statement(node), text)
        new = cst.parse_expression(text, self.tree.config_for_parsing)
        return Change(old, new.with_changes(lpar=old.lpar, rpar=old.rpar), tuple(imports))

    def append_after(self, node: ast.stmt, text: str) -> Change:
        """Statements below one, with the empty lines that the text begins with."""
        old = self.line(node)
        new = cst.parse_module(text.lstrip("\n"), self.tree.config_for_parsing).body
        empty = [cst.EmptyLine(indent=False)] * (len(text) - len(text.lstrip("\n")))
        first = new[0].with_changes(leading_lines=[*empty, *new[0].leading_lines])
        return Change(old, cst.FlattenSentinel([old, first, *new[1:]]))

    def _dedented(self, statement: ast.stmt, text: str) -> str:
        """Text of a block without the block's indentation, which libcst adds again."""
        first = self.lines[statement.lineno - 1]
        indent = first[: len(first) - len(first.lstrip())]
        if not indent or "\n" not in text:
            return text
        strings = (
            n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Constant, ast.JoinedStr))
        )
        kept = {line for n in strings for line in range(n.lineno + 1, (n.end_lineno or 0) + 1)}
        lines = enumerate(io.StringIO(text, newline=""), 1)
        return "".join(
            line if number in kept else line.removeprefix(indent) for number, line in lines
        )

    def rename_keyword(self, call: Call, old: str, new: str) -> Change:
        """`f(old=x)` to `f(new=x)`."""
        for argument in self.cst(call.node).args:
            if argument.keyword is not None and argument.keyword.value == old:
                return Change(argument.keyword, cst.Name(new))
        raise KeyError(old)

    def replace_statement(
        self,
        node: ast.stmt,
        text: str,
        imports: Iterable[_NeededImport] = (),
        *,
        is_dedented: bool = False,
    ) -> Change:
        """Statements in the place of one, which has its line (or lines) to itself.

        Lines after the first have the block's indentation, unless the text `is_dedented`.
        Comments stay. Without a text the statement goes, and the last of a block becomes `pass`.

        Raises:
            LookupError: It shares its line with others.
        """
        old = self.line(node)
        gone = not text and not _is_only_one(node)
        text = text if is_dedented else self._dedented(node, text)
        text = text or (REMOVED if gone else "pass")
        parsed = cst.parse_module(text, self.tree.config_for_parsing)
        new = list(parsed.body)
        above = _with_comment_of(old) if gone else [*old.leading_lines, *parsed.header]
        new[0] = new[0].with_changes(leading_lines=above)
        if isinstance(old, cst.SimpleStatementLine) and isinstance(
            new[-1], cst.SimpleStatementLine
        ):
            new[-1] = new[-1].with_changes(trailing_whitespace=old.trailing_whitespace)
        return Change(old, cst.FlattenSentinel(new), tuple(imports))

    def line(self, node: ast.stmt) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
        """libcst's node of a statement, line end included.

        Raises:
            LookupError: It shares its line with other statements.
        """
        found = self._index.get(("Line", *self._place(node)))
        if found is None:
            raise LookupError(f"line {node.lineno} has more than one statement")
        return found

    def is_alone(self, node: ast.stmt) -> bool:
        """True if a statement has its line, or lines, to itself."""
        return ("Line", *self._place(node)) in self._index

    # The other tree.

    def cst(self, node: ast.AST):
        """libcst's node of an expression, or of a statement without its line end."""
        return self._index[(type(node).__name__, *self._place(node))]

    @functools.cached_property
    def tree(self) -> cst.Module:
        return cst.parse_module(self.text)

    @functools.cached_property
    def places(self) -> dict[cst.CSTNode, CodeRange]:
        wrapper = MetadataWrapper(self.tree, unsafe_skip_copy=True)
        return dict(wrapper.resolve(PositionProvider))

    @functools.cached_property
    def _index(self) -> dict[tuple, cst.CSTNode]:
        found: dict[tuple, cst.CSTNode] = {}
        for node, place in self.places.items():
            where = (place.start.line, place.start.column, place.end.line, place.end.column)
            found[(type(node).__name__, *where)] = node
            if isinstance(node, cst.BaseCompoundStatement) or (
                isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1
            ):
                if isinstance(node, cst.SimpleStatementLine):
                    inner = self.places[node.body[0]]
                    where = (
                        inner.start.line, inner.start.column, inner.end.line, inner.end.column,
                    )  # fmt: skip
                found[("Line", *where)] = node
        return found

    def _place(self, node: ast.AST) -> _Place:
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        return (
            first,
            self._column(first, node.col_offset),  # type: ignore[attr-defined]
            last,
            self._column(last, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def _column(self, line: int, offset: int) -> int:
        """`ast` counts bytes."""
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode())


def _is_only_one(node: ast.stmt) -> bool:
    """True if a statement is all there is in its block."""
    outer = node.parent  # type: ignore[attr-defined]
    if isinstance(outer, ast.Module):
        return False
    blocks = (getattr(outer, name, ()) for name in ("body", "orelse", "finalbody"))
    return any(list(block) == [node] for block in blocks if isinstance(block, list))


def _with_comment_of(
    old: cst.SimpleStatementLine | cst.BaseCompoundStatement,
) -> Sequence[cst.EmptyLine]:
    """The lines above a statement that goes, and its own comment, unless that is for a linter."""
    if isinstance(old, (cst.ClassDef, cst.FunctionDef)):
        return ()  # a comment above it is its own
    comment = isinstance(old, cst.SimpleStatementLine) and old.trailing_whitespace.comment
    if not comment or _FOR_LINTERS.match(comment.value):
        return old.leading_lines
    return [*old.leading_lines, cst.EmptyLine(comment=comment)]


@functools.cache
def legacy_name(name: str) -> str:
    """The one name of what has several: "tf.flags" for "tf.app.flags"."""
    return facade.canonical(name)


def is_below(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def with_imports(text: str, imports: Iterable[_NeededImport]) -> str:
    """The text of a file with imports that it may not have yet."""
    for module, name, alias in dict.fromkeys(imports):
        written = _import(module, name, alias)
        if not re.search(rf"^{re.escape(written)}\s*(#.*)?$", text, re.MULTILINE):
            text = _insert(text, written)
    return text


def _import(module: str, name: str | None, alias: str | None) -> str:
    renamed = f" as {alias}" if alias and alias != name else ""
    return f"from {module} import {name}{renamed}" if name else f"import {module}{renamed}"


def _insert(text: str, statement: str) -> str:
    """Puts an import before the first one at the top of the file that is not of `__future__`."""
    tree = ast.parse(text)
    lines = list(io.StringIO(text, newline=""))
    body = [n for n in tree.body if not is_docstring(n) and not _is_future(n)]
    before = [n for n in tree.body if n not in body]
    imports = [n for n in body if isinstance(n, (ast.Import, ast.ImportFrom))]
    newline = cst.parse_module(text).default_newline
    if imports and imports[0] is body[0]:
        at = imports[0].lineno - 1
        for node in imports:  # after those from the same module that sort before it
            written = ast.unparse(node)
            if written.split()[:2] != statement.split()[:2] or written > statement:
                break
            at = node.end_lineno or at
    else:
        at = before[-1].end_lineno or 0 if before else _after_header(lines)
        statement = f"{newline}{statement}" if before else statement
    return "".join([*lines[:at], f"{statement}{newline}", *lines[at:]])


def outermost(node: ast.AST) -> ast.stmt:
    """The statement at the top of the file that a node is in."""
    while not isinstance(node.parent, ast.Module):  # type: ignore[attr-defined]
        node = node.parent  # type: ignore[attr-defined]
    assert isinstance(node, ast.stmt)
    return node


def is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _after_header(lines: list[str]) -> int:
    """The first line that is neither a comment nor empty."""
    return next((i for i, line in enumerate(lines) if line.strip() and line[0] != "#"), len(lines))
