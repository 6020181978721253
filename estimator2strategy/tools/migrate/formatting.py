"""Code in a project's shape: imports sorted, and formatted by ruff or black.

    tidied("x = 1", "x=1", "trainer/model.py")

If the project has settings for a formatter, it formats the file. If not, one that is installed
formats the lines that have changed. Without either the text stays as the codemods wrap it.

    in_units("def f():\n    return 1", "  ")

Codemods write with four spaces.
"""

from __future__ import annotations

import ast
import difflib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

from estimator2strategy.tools.migrate.model_class import wrapping

# The indentation in which codemods write.
OWN = "    "


def unit_of(tree: ast.Module) -> str:
    """The white space by which the first block of a file is indented; ours if there is none."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
            return " " * int(body[0].col_offset - node.col_offset)
    return OWN


def in_units(text: str, unit: str) -> str:
    """Statements that are indented by four spaces, with blocks indented by `unit`."""
    if unit == OWN:
        return text
    tree = ast.parse(text)
    depth_of = {}  # of the lines of a statement, which may stand deeper than it
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            for number in range(node.lineno, last + 1):
                depth_of[number] = node.col_offset // len(OWN)
    kept, written = lines_in_strings(tree), []
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        code = line.lstrip()
        own = (len(line) - len(code)) // len(OWN)
        depth = own if code.startswith("#") else depth_of.get(number, own)
        is_kept = number in kept or not code
        written.append(line if is_kept else unit * depth + line[len(OWN) * depth :])
    return "".join(written)


def lines_in_strings(tree: ast.Module) -> set[int]:
    """The numbers of the lines that begin in a string."""
    strings = (n for n in ast.walk(tree) if isinstance(n, (ast.Constant, ast.JoinedStr)))
    return {line for n in strings for line in range(n.lineno + 1, (n.end_lineno or 0) + 1)}


_SECONDS = 60
_TOOLS = ("ruff", "black")


def tidied(text: str, before: str, path: str) -> str:
    """The text of a file with sorted imports, in the shape that its project gives to code."""
    text = with_sorted_imports(text, path)
    configured = wrapping.formatter(path)
    for name in [configured] if configured else _TOOLS:
        tool = _installed(name)
        if tool is not None:
            return _FORMATTERS[name](tool, text, before, path, whole=bool(configured))
    return text


def with_sorted_imports(text: str, path: str) -> str:
    """The text with its first imports in sections: of Python, of libraries, of the program."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    imports = _first_imports(tree)
    if len(imports) < 2:
        return text
    first, last = imports[0].lineno, imports[-1].end_lineno or 0
    of_imports = {n for i in imports for n in range(i.lineno, (i.end_lineno or 0) + 1)}
    others = [n for n in range(first, last + 1) if n not in of_imports]
    if any(lines[number - 1].strip() for number in others):
        return text  # comments between them
    newline = "\r\n" if "\r\n" in text else "\n"
    own = _Own(path)
    written, section = [], None
    if first > 1 and lines[first - 2].strip() and not lines[first - 2].startswith("#"):
        written.append(newline)  # below the docstring
    for of_module in _by_module(sorted(imports, key=own.order), lines):
        if section not in (None, own.section(of_module[0])):
            written.append(newline)
        section = own.section(of_module[0])
        written += _written(of_module, lines, newline)
    return "".join([*lines[: first - 1], *written, *lines[last:]])


def _by_module(
    imports: list[ast.Import | ast.ImportFrom], lines: list[str]
) -> list[list[ast.Import | ast.ImportFrom]]:
    """The imports, those of names of one module together."""
    groups: list[list[ast.Import | ast.ImportFrom]] = []
    for node in imports:
        before = groups[-1][-1] if groups else node
        both = (before, node)
        is_same = before is not node and _module(before) == _module(node)
        is_plain = all(ast.unparse(one) == _line(one, lines) for one in both)  # no comments
        if is_same and is_plain and all(isinstance(one, ast.ImportFrom) for one in both):
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _line(node: ast.stmt, lines: list[str]) -> str:
    return "".join(lines[node.lineno - 1 : node.end_lineno]).strip()


def _written(
    imports: list[ast.Import | ast.ImportFrom], lines: list[str], newline: str
) -> list[str]:
    """The lines of an import, or of several from one module."""
    first = imports[0]
    if len(imports) == 1:
        return lines[first.lineno - 1 : first.end_lineno]
    names = sorted({ast.unparse(alias) for node in imports for alias in node.names})
    return [f"from {_module(first)} import {', '.join(names)}{newline}"]


def _first_imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The imports at the top of a file, each on lines of its own."""
    imports: list[ast.Import | ast.ImportFrom] = []
    for node in tree.body:
        if imports and node.lineno <= (imports[-1].end_lineno or 0):
            return []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
        elif imports:
            break
    return imports


def _module(node: ast.Import | ast.ImportFrom) -> str:
    if isinstance(node, ast.Import):
        return node.names[0].name
    return "." * node.level + (node.module or "")


class _Own:
    """Tells the modules of a file's program from those of libraries.

    Args:
        path: The file.
    """

    def __init__(self, path: str):
        self._folders = list(wrapping.folders(path))

    def order(self, node: ast.Import | ast.ImportFrom) -> tuple[int, bool, str]:
        """The place of an import among others."""
        return self.section(node), isinstance(node, ast.ImportFrom), _module(node).lower()

    def section(self, node: ast.Import | ast.ImportFrom) -> int:
        """The section that an import stands in."""
        top = _module(node).partition(".")[0]
        if top == "__future__":
            return 0
        if not top or self._has(top):
            return 3
        return 1 if top in sys.stdlib_module_names else 2

    def _has(self, top: str) -> bool:
        return any(
            (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()
            for folder in self._folders
        )


def _installed(name: str) -> str | None:
    """The path of a formatter beside this Python, or on the PATH; none of the current folder."""
    beside = os.path.dirname(sys.executable)
    path = shutil.which(name, path=beside) or shutil.which(name)
    return path if path and os.path.isabs(path) else None


def _by_ruff(tool: str, text: str, before: str, path: str, *, whole: bool) -> str:
    end = ["--no-cache", "--stdin-filename", path, "-"]
    if whole:
        rules = ["--select", "I", "--fix", "--exit-zero", "--quiet", "--force-exclude"]
        text = _output([tool, "check", *rules, *end], text)
        return _output([tool, "format", "--quiet", "--force-exclude", *end], text)
    limit = f"line-length={wrapping.line_limit_of(path)}"
    for first, last in reversed(_changed(before, text)):
        some = ["--isolated", "--config", limit, f"--range={first}-{last + 1}"]
        text = _output([tool, "format", "--quiet", *some, *end], text)
    return text


def _by_black(tool: str, text: str, before: str, path: str, *, whole: bool) -> str:
    options = ["--quiet", "--stdin-filename", path]
    if not whole:
        options += [f"--line-length={wrapping.line_limit_of(path)}"]
        options += [f"--line-ranges={first}-{last}" for first, last in _changed(before, text)]
    return _output([tool, *options, "-"], text)


_FORMATTERS = {"ruff": _by_ruff, "black": _by_black}


def _changed(before: str, text: str) -> list[tuple[int, int]]:
    """The first and the last number of each run of lines that are new."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), text.splitlines(), autojunk=False)
    blocks = [(b + 1, end) for kind, _, _, b, end in matcher.get_opcodes() if kind != "equal"]
    return [(first, last) for first, last in blocks if first <= last]


def _output(command: list[str], text: str) -> str:
    """The text as a formatter writes it; as it was, if the formatter fails."""
    folder = Path(command[0]).parent
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, check=True, timeout=_SECONDS,
            cwd=folder,
        )  # fmt: skip
        written = done.stdout.decode()
        ast.parse(written)
    except (OSError, subprocess.SubprocessError, UnicodeError, SyntaxError, ValueError):
        return text
    return written or text
