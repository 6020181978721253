"""Notebooks of Jupyter as one text of Python: its code cells, one after the other.

    notebook = read(path)
    notebook.text            # "# --- cell 1 ---\\nimport tensorflow as tf\\n# --- cell 2 ---\\n..."
    notebook.with_text(new)  # the bytes of the file, with the cells of another such text

A line that is no Python (`%matplotlib inline`, `!pip install x`) stands there as a `pass`, and is
what it was when the text is written back.
"""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import os
import re
import tokenize
from typing import Any, NamedTuple

from estimator2strategy.tools.reader.source import NotebookError
from estimator2strategy.tools.untrusted.regular_files import read_bytes

# Magics of a cell that run its code as it stands.
_RUNS_THE_CELL = re.compile(r"%%(time|timeit|capture|prun)\b")
_MAGIC = re.compile(r"\s*[%!?]|.*\?\s*$")
_ASSIGNED = re.compile(r"(\s*[\w., ]+=)\s*[%!]")
_MARKER = re.compile(r"^# --- cell (\d+) ---$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"^.*# magic (\d+)$", re.MULTILINE)


class Unread(NamedTuple):
    """A cell that is left out."""

    cell: int
    error: SyntaxError | None
    why: str


@dataclasses.dataclass(frozen=True)
class Notebook:
    """A notebook as one text.

    Attributes:
        text: The text.
        unread: The cells that are no Python, or cannot be parsed.
        magics: The lines that the text has placeholders for.
        content: The notebook, as JSON has it.
        data: The bytes of its file.
    """

    text: str
    unread: tuple[Unread, ...]
    magics: tuple[str, ...]
    content: dict[str, Any]
    data: bytes

    def with_text(self, text: str) -> bytes:
        """The bytes of the notebook with the cells of another text.

        Raises:
            NotebookError: A cell or a magic is gone from the text, or the file is not laid out as
                Jupyter writes it, so that all of it would change.
        """
        cells = [cell for cell in self.content["cells"] if cell["cell_type"] == "code"]
        parts = _MARKER.split(text)
        names = [str(i) for i in range(1, len(cells) + 1)]
        found = sorted(map(int, _PLACEHOLDER.findall(text)))
        if parts[1::2] != names or found != list(range(len(self.magics))):
            raise NotebookError("its cells or magics cannot be told apart after the change")
        layout = self._layout()
        content = json.loads(self.data)
        cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        sources = [part.removeprefix("\n") for part in parts[2::2]]
        if cells:
            sources[0] = parts[0] + sources[0]  # imports that are put at the top
        for cell, source in zip(cells, sources, strict=True):
            was_lines = isinstance(cell["source"], list)
            ended = "".join(cell["source"]).endswith("\n")
            source = _PLACEHOLDER.sub(lambda found: self.magics[int(found[1])], source)
            source = source if ended else source.removesuffix("\n")
            cell["source"] = source.splitlines(keepends=True) if was_lines else source
        return _dumped(content, *layout)

    def _layout(self) -> tuple[int | None, bool, str]:
        """The arguments of `_dumped` that give the file as it is."""
        end = "\n" if self.data.endswith(b"\n") else ""
        for indent in (1, 2, 4, None):
            for ascii_only in (False, True):
                if _dumped(self.content, indent, ascii_only, end) == self.data:
                    return indent, ascii_only, end
        raise NotebookError("it is not laid out as Jupyter writes it: open it there and save it")


def _dumped(content: Any, indent: int | None, ascii_only: bool, end: str) -> bytes:
    return (json.dumps(content, indent=indent, ensure_ascii=ascii_only) + end).encode()


def read(path: str | os.PathLike[str]) -> Notebook:
    """Reads a notebook of Python.

    Raises:
        OSError: It cannot be read.
        NotebookError: It is none, or is of another language or of an old format.
    """
    data = read_bytes(path)
    try:
        content = json.loads(data)
        language = _language(content.get("metadata", {}))
        cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = "it is no notebook of format 4; open it in Jupyter and save it"
        raise NotebookError(f"{said} ({type(error).__name__})") from error
    if language != "python":
        raise NotebookError(f"a notebook of the language {language!r}")
    magics: list[str] = []
    unread: list[Unread] = []
    parts = []
    for number, source in enumerate(sources, 1):
        text = _as_python(number, source, magics, unread)
        parts.append(f"# --- cell {number} ---\n{text}" + ("" if text.endswith("\n") else "\n"))
    return Notebook("".join(parts), tuple(unread), tuple(magics), content, data)


def _language(metadata: Any) -> str:
    kernel = metadata.get("kernelspec", {}).get("language")
    return str(kernel or metadata.get("language_info", {}).get("name") or "python").lower()


def _as_python(number: int, source: str, magics: list[str], unread: list[Unread]) -> str:
    """A cell's text, with placeholders for what is no Python; they are added to `magics`."""
    if not _error_of(source):
        return source
    lines = source.split("\n")
    magic = source.lstrip()
    if magic.startswith("%%") and not _RUNS_THE_CELL.match(magic):
        unread.append(Unread(number, None, f"{magic.split()[0]}: a cell of another program"))
        return _held(lines, magics)
    made: list[str] = []
    continued = False
    for line in lines:
        assigned = _ASSIGNED.match(line)
        if continued or ((assigned or _MAGIC.match(line)) and not _is_inside(made)):
            indent = line[: len(line) - len(line.lstrip())]
            held = f"{assigned[1]} None" if assigned and not continued else f"{indent}pass"
            made.append(f"{'' if continued else held + '  '}# magic {len(magics)}")
            magics.append(line)
            continued = line.endswith("\\")
        else:
            made.append(line)
    text = "\n".join(made)
    if error := _error_of(text):
        unread.append(Unread(number, error, f"line {error.lineno}: {error.msg}"))
        return _held(lines, magics)
    return text


def _held(lines: list[str], magics: list[str]) -> str:
    """Placeholders alone, for a whole cell."""
    first = len(magics)
    magics.extend(lines)
    return "\n".join(f"# magic {first + i}" for i in range(len(lines)))


def _error_of(text: str) -> SyntaxError | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error))
    return None


def _is_inside(lines: list[str]) -> bool:
    """True if a bracket or a string is open at the end of the lines."""
    text = "\n".join(lines) + "\n"
    try:
        for _ in tokenize.generate_tokens(io.StringIO(text).readline):
            pass
    except (tokenize.TokenError, IndentationError) as error:
        return "EOF in multi-line" in str(error)
    except SyntaxError:
        return False
    return False


def place(text: str, line: int) -> tuple[int, int]:
    """The cell, and the line in it, of a line of a notebook's text; cell 0 is before the first."""
    before = text.splitlines()[:line]
    for i in range(len(before) - 1, -1, -1):
        if found := _MARKER.fullmatch(before[i]):
            return int(found[1]), max(line - i - 1, 1)
    return 0, line


def shown_cell(shown: str, text: str, line: int) -> tuple[str, int]:
    """`train.ipynb#cell-3`, and the line in that cell."""
    cell, inside = place(text, line)
    return f"{shown}#cell-{cell}" if cell else shown, inside
