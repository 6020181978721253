"""Lines of code within a limit, broken as black breaks them.

    wrapped("x = f(a, b)", 8)      # "x = f(\n    a, b\n)"

A line that cannot be broken stays as it is."""

from __future__ import annotations

import configparser
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT = 88  # black's


def line_limit_of(path: Any) -> Any:
    """The limit for a file, from the settings in the folders above it."""
    return _of_folder(Path(path).resolve().parent)


def formatter(path: Any) -> Any:
    """The formatter that a file's project has settings for: "ruff" or "black", or None."""
    return _formatter_of(Path(path).resolve().parent)


@functools.cache
def _formatter_of(folder: Any) -> Any:
    for above in _project(folder):
        if any((above / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
            return "ruff"
        tools = _settings(above / "pyproject.toml").get("tool", {})
        used = next((name for name in ("ruff", "black") if name in tools), None)
        if used:
            return used
    return None


def folders(path: Any) -> Any:
    """The folders of a file, from the one that it is in up to that of the repository."""
    return _project(Path(path).resolve().parent)


def _project(folder: Any) -> Iterator[Any]:
    """The folders from this one up to that of the repository."""
    for above in (folder, *folder.parents):
        yield above
        if (above / ".git").exists():
            return


@functools.cache
def _of_folder(folder: Any) -> Any:
    for above in _project(folder):
        for read, name in ((_toml, "ruff.toml"), (_toml, "pyproject.toml"), (_flake8, "setup.cfg")):
            file = above / name
            limit = read(file) if file.is_file() else None
            if limit:
                return limit
    return DEFAULT


def _settings(file: Any) -> Any:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _toml(file: Any) -> Any:
    settings = _settings(file)
    tools = settings.get("tool", {})
    places = (settings, tools.get("ruff", {}), tools.get("black", {}))
    return next((place["line-length"] for place in places if "line-length" in place), None)


def _flake8(file: Any) -> Any:
    settings = configparser.ConfigParser()
    try:
        settings.read(file, encoding="utf-8")
        return settings.getint("flake8", "max-line-length", fallback=None)
    except (configparser.Error, ValueError):
        return None


_OPENING, _CLOSING = "([{", ")]}"
INDENT = "    "
_SHORT = 12


def joined(text: Any) -> Any:
    """A statement of several lines, without comments, on one line."""
    lines = [line.strip() for line in text.splitlines()]
    one = lines[0]
    for line in lines[1:]:
        tight = one[-1:] in _OPENING or line[:1] in _CLOSING
        one += line if tight else f" {line}"
    return one.replace(",)", ")") if one.count("(") and not one.endswith(",)") else one


def wrapped(text: Any, limit: Any, indent: Any = "") -> Any:
    """The lines of a statement, each within the limit if it can be broken at brackets."""
    line = indent + text
    if len(line) <= limit or text.lstrip().startswith("#"):
        return [line]
    pairs = _brackets(text)
    fitting = [pair for pair in pairs if len(indent) + pair[0] < limit]
    if not pairs:
        return [line]
    start, end = (fitting or pairs)[-1]
    head, body, tail = text[: start + 1], text[start + 1 : end].strip(), text[end:]
    if not body:
        return [line]
    inner = indent + INDENT
    parts, clauses = _parts(body), _clauses(body)
    is_display = len(parts) > 1 and not _is_called(text[:start])
    if len(inner + body) <= limit and not body.endswith(",") and not is_display:
        lines = [inner + body]
    elif len(clauses) > 1:
        lines = [line for clause in clauses for line in wrapped(clause, limit, inner)]
    elif len(parts) == 1 and not body.endswith(","):
        lines = wrapped(body, limit, inner)
    else:
        lines = []
        for part in parts:
            *above, last = wrapped(part, limit - 1, inner)
            starred = part.startswith("*")
            lines += [*above, last if starred and part is parts[-1] else f"{last},"]
    return [indent + head, *lines, indent + tail]


def _is_called(before: Any) -> Any:
    """True if the bracket behind is of a call or an index, not of a list or a dict."""
    return before[-1:].isalnum() or before[-1:] in ("_", ")", "]")


def _brackets(text: Any) -> Any:
    """(start, end) of the pairs of brackets that are in no other, and have something in them."""
    depth, start = 0, 0
    brackets: list[Any] = []
    for position, character in _code(text):
        if character in _OPENING:
            if depth == 0:
                start = position
            depth += 1
        elif character in _CLOSING:
            depth -= 1
            # A short index behind a call is no place to break.
            is_index = text[start] == "[" and brackets and position - start < _SHORT
            if depth == 0 and position > start + 1 and not is_index:
                brackets.append((start, position))
    return brackets


def _parts(body: Any) -> Any:
    """What commas outside of brackets part."""
    parts, depth, begin = [], 0, 0
    for position, character in _code(body):
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth == 0:
            parts.append(body[begin:position].strip())
            begin = position + 1
    rest = body[begin:].strip()
    return [*parts, rest] if rest else parts


def _clauses(body: Any) -> Any:
    """The element of a comprehension, and its `for` and `if`; the body alone if it is none."""
    depth, begin = 0, 0
    clauses: list[Any] = []
    for position, character in _code(body):
        depth += (character in _OPENING) - (character in _CLOSING)
        is_clause = body.startswith((" for ", " if "), position) and (clauses or " for " in body)
        if character == "," and depth == 0 and not clauses:
            return [body]
        if is_clause and depth == 0 and (clauses or body.startswith(" for ", position)):
            clauses.append(body[begin:position].strip())
            begin = position + 1
    return [*clauses, body[begin:].strip()] if clauses else [body]


def _code(text: Any) -> Iterator[Any]:
    """(position, character) of what is not in a string."""
    quote, position = "", 0
    while position < len(text):
        character = text[position]
        if quote:
            if character == "\\":
                position += 1
            elif text.startswith(quote, position):
                position += len(quote) - 1
                quote = ""
        elif character in "'\"":
            quote = character * 3 if text.startswith(character * 3, position) else character
            position += len(quote) - 1
        else:
            yield position, character
        position += 1
