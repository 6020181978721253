"""The marks that codemods leave where they cannot decide: `# TODO(e2s): codemod: what to do`.

A codemod takes its own marks away before it looks at a file, and sets those that are still due.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterable

from estimator2strategy.tools.migrate.codemod import Todo
from estimator2strategy.tools.migrate.module import Module
from estimator2strategy.tools.reader.python_files import comments

MARK = re.compile(r"^\s*# TODO\(e2s\): (?P<codemod>[a-z0-9-]+): (?P<message>.*?)\s*$")


def without_marks(text: str, codemod: str) -> str:
    """The text without the marks of a codemod."""
    if f"# TODO(e2s): {codemod}: " not in text:
        return text
    lines = list(io.StringIO(text, newline=""))
    for number in comments(text):
        match = MARK.match(lines[number - 1])
        if match and match["codemod"] == codemod:
            lines[number - 1] = ""
    return "".join(lines)


def with_marks(module: Module, codemod: str, todos: Iterable[Todo]) -> str:
    """The module's text with a mark above the statement of each of these."""
    lines = list(module.lines)
    newline = "\r\n" if "\r\n" in module.text else "\n"
    marks: dict[int, list[str]] = {}
    for todo in todos:
        number = _first_line(module, todo.node)
        line = lines[number - 1]
        indent = line[: len(line) - len(line.lstrip())]
        mark = f"{indent}# TODO(e2s): {codemod}: {todo.message}{newline}"
        if mark not in (*marks.get(number, ()), *lines[: number - 1][-1:]):
            marks.setdefault(number, []).append(mark)
    for number, written in marks.items():
        lines[number - 1] = "".join([*written, lines[number - 1]])
    return "".join(lines)


def marks(text: str) -> list[tuple[int, str, str]]:
    """(line, codemod, message) of each mark."""
    if "# TODO(e2s): " not in text:
        return []
    lines = list(io.StringIO(text, newline=""))
    found = []
    for number in sorted(comments(text)):
        match = MARK.match(lines[number - 1])
        if match:
            found.append((number, match["codemod"], match["message"]))
    return found


def _first_line(module: Module, node: ast.AST) -> int:
    """The first line of the statement around a node that begins where its line begins."""
    statement = module.statement(node)
    while True:
        decorators = getattr(statement, "decorator_list", None) or []
        number = min([statement.lineno, *(d.lineno for d in decorators)])
        column = statement.col_offset
        before = module.lines[number - 1].encode()[:column] if not decorators else b""
        outer = getattr(statement, "parent", None)
        if not before.strip() or outer is None or isinstance(outer, ast.Module):
            return number
        statement = module.statement(outer)
