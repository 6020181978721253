"""The indentation of a file, for code that is put into it.

    in_units("def f():\\n    return 1", "  ")

Codemods write with four spaces.
"""

from __future__ import annotations

import ast
import io

# The indentation in which codemods write.
OWN = "    "


def unit_of(tree: ast.Module) -> str:
    """The white space by which the first block of a file is indented; ours if there is none."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
            return " " * (body[0].col_offset - node.col_offset)
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
