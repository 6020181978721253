"""One file as codemods see it: what its names stand for, and the nodes to edit.

    module = Module.parse(path, text)
    for call in module.calls("tf.to_float"):
        yield module.replace(call.node, f"tf.cast({module.written(call.node.args[0])}, ...)")

Names are told by `reader/source.py`, which reads an `ast`. An edit replaces the characters of a
node, so all others stay as they were written.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.tools.migrate.change import Change
from estimator2strategy.tools.migrate.formatting import in_units, lines_in_strings, unit_of
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.python_files import MOST_TOGETHER, parse
from estimator2strategy.tools.reader.source import (
    Call,
    LexicalScope,
    Source,
)

# The modules that `tf` may stand for.
TENSORFLOW = ("tensorflow", "tensorflow.compat.v1", "estimator2strategy.tf1")
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


class SharedLineError(LookupError):
    """A statement cannot be replaced, because it shares its line with another.

    Attributes:
        line: The line.
    """

    def __init__(self, line: int):
        super().__init__(f"line {line} has more than one statement")
        self.line = line


class Module:
    """A parsed file.

    Attributes:
        text: Its text.
        source: Its scopes, calls and names.
        facts: Facts about the program that it is part of.
        program: That program, a `ProgramFiles`, where a codemod may change its other files too.
    """

    def __init__(self, source: Source, facts: Facts, program: Any = None):
        self.text, self.source, self.facts, self.program = source.text, source, facts, program
        self.project = program.project if program else Project([source], MOST_TOGETHER)

    @classmethod
    def parse(cls, path: str, text: str, facts: Facts = Facts()) -> Module:
        """Reads a file's text.

        Raises:
            SyntaxError, ValueError, RecursionError: It is no Python 3.
        """
        return cls(parse(path, path, text, again=True), facts)

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

    @functools.cached_property
    def newline(self) -> str:
        """The end of the file's lines."""
        return "\r\n" if "\r\n" in self.text else "\n"

    # Edits.

    def _change(
        self, place: tuple[int, int], text: str, imports: Iterable[_NeededImport] = ()
    ) -> Change:
        return Change(*place, text, tuple(imports), path=self.source.path)

    def replace(self, node: ast.AST, text: str, imports: Iterable[_NeededImport] = ()) -> Change:
        """The expression `text` in the place of an expression, in the parentheses that it has."""
        text = self._indented(self.statement(node), f"({text})")
        # The place of a generator has those of the call around it.
        text = text if isinstance(node, ast.GeneratorExp) else text[1:-1]
        return self._change(self.span(node), text, imports)

    def append_after(self, node: ast.stmt, text: str) -> Change:
        """Statements below one, with the empty lines that the text begins with."""
        start, end = self.lines_of(node)
        below = self._indented(node, "\n" + in_units(text, self._unit).rstrip("\n"))
        return self._change((start, end), self.text[start:end] + below)

    def insert_before(
        self, node: ast.stmt, text: str, imports: Iterable[_NeededImport] = ()
    ) -> Change:
        """Statements above one at the top of the file, and above its comments."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        while first > 1 and self.lines[first - 2].startswith("#"):
            first -= 1
        at = self._starts[first - 1]
        return self._change((at, at), in_units(text, self._unit), imports)

    def rename_keyword(self, call: Call, old: str, new: str) -> Change:
        """`f(old=x)` to `f(new=x)`."""
        for keyword in call.node.keywords:
            if keyword.arg == old:
                start, _ = self.span(keyword)
                return self._change((start, start + len(old)), new)
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
            SharedLineError: It shares its line with others.
        """
        if not text and not _is_only_one(node):
            return self._change(self._gone(node), "", imports)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            text = in_units(text, self._unit)
        text = self._indented(node, text.rstrip("\n") or "pass", is_dedented=is_dedented)
        return self._change(self.lines_of(node), text, imports)

    def is_alone(self, node: ast.stmt) -> bool:
        """True if a statement has its line, or lines, to itself."""
        start, end = self.span(node)
        before = self.text[self._line_start(start) : start]
        behind = self.text[end : self._line_end(end)].strip().removeprefix(";").strip()
        return not before.strip() and (not behind or behind.startswith("#"))

    def lines_of(self, node: ast.stmt) -> tuple[int, int]:
        """The place of a statement with its decorators, and with the comments in its block.

        Raises:
            SharedLineError: It shares its line with others.
        """
        if not self.is_alone(node):
            raise SharedLineError(node.lineno)
        start, end = self.span(node)
        for decorator in getattr(node, "decorator_list", ()):
            start = min(start, self.text.rindex("@", 0, self.span(decorator)[0]))
        if not hasattr(node, "body"):
            return start, end
        last = end = self._line_end(end)
        while last < len(self.text):  # comments that stand deeper are of its block
            following = last + len(self.newline), self._line_end(last + len(self.newline))
            line = self.text[slice(*following)]
            is_comment = line.lstrip().startswith("#")
            if line.strip() and not (
                is_comment and len(line) - len(line.lstrip()) > node.col_offset
            ):
                break
            last = following[1]
            end = last if is_comment else end
        return start, end

    def comments_above(self, node: ast.stmt) -> range:
        """The lines above a statement that are comments, counted from 0."""
        first = node.lineno - 1
        while self.lines[first - 1].lstrip().startswith("#"):
            first -= 1
        return range(first, node.lineno - 1)

    def _gone(self, node: ast.stmt) -> tuple[int, int]:
        """The characters that go with a statement: its lines, and of a function those above."""
        start, end = self.lines_of(node)
        behind = self.text[end : self._line_end(end)]
        comment = behind.find("#")
        if comment >= 0 and not _FOR_LINTERS.match(behind[comment:]):
            return start, end + comment
        start, end = self._line_start(start), self._line_end(end) + len(self.newline)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            while start:  # a comment above it is its own
                above = self._line_start(start - len(self.newline))
                line = self.text[above:start].strip()
                if line and not line.startswith("#"):
                    break
                start = above
        return start, end

    def _indented(self, statement: ast.stmt, text: str, *, is_dedented: bool = False) -> str:
        """Text with the indentation of a statement before each line but the first."""
        first = self.lines[statement.lineno - 1]
        indent = first[: len(first) - len(first.lstrip())]
        if not indent or "\n" not in text:
            return text
        kept = lines_in_strings(ast.parse(text))
        lines = enumerate(io.StringIO(text, newline=""), 1)
        return "".join(
            line
            if number in kept or number == 1 or not line.strip()
            else indent + (line if is_dedented else line.removeprefix(indent))
            for number, line in lines
        )

    @functools.cached_property
    def _unit(self) -> str:
        return unit_of(self.source.tree)

    # Places in the text.

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The first character of a node, and the first behind it."""
        first, start, last, end = self._place(node)
        return self._starts[first - 1] + start, self._starts[last - 1] + end

    @functools.cached_property
    def _starts(self) -> list[int]:
        """The first character of each line."""
        return [0, *itertools.accumulate(map(len, self.lines))]

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        """The end of a line, without what ends it."""
        end = self.text.find(self.newline, at)
        return len(self.text) if end < 0 else end

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
    newline = "\r\n" if "\r\n" in text else "\n"
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


def parent_of(node: Any) -> Any:
    """The node around a node, which the reader of the file has noted."""
    return node.parent
