"""The Python files of folders: which are read, and which are left out and named.

A tree may hold anything: FIFOs that nobody writes to, links that lead around in a circle, files
larger than people write. Nothing is opened but regular files of Python, up to a size.
"""

from __future__ import annotations

import ast
import dataclasses
import fnmatch
import io
import os
import re
import stat
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from estimator2strategy.engine import patches
from estimator2strategy.tools.reader.source import Source
from estimator2strategy.tools.untrusted.printable import printable
from estimator2strategy.tools.untrusted.regular_files import (
    MOST_SOURCE,
    irregular,
    read_bytes,
    unreadable,
)

# Bytes of source that are read as one program: their trees take some 70 times as much memory.
MOST_TOGETHER = 10 * 2**20

_NOTEBOOK = ".ipynb"
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "build", "dist"}

_MACOS = "attributes of another file, which macOS keeps beside it"


@dataclasses.dataclass(frozen=True)
class NotChecked:
    """Something that the check could not see into; `line` 0 is the whole file."""

    path: str
    line: int
    why: str


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The files that are wanted of a folder.

    Attributes:
        exclude: Patterns of paths to leave out, relative to the root.
        root: The folder that shown paths are relative to.
    """

    exclude: tuple[str, ...] = ()
    root: Path = dataclasses.field(default_factory=Path.cwd)


class EncodingError(ValueError):
    """The encoding that a file declares is not there, or is none of text."""


def collect(
    paths: Iterable[str], wanted: Wanted, problems: list[str], skipped: list[NotChecked]
) -> Iterator[Path]:
    """The Python files that are given, and those in folders, each once.

    Args:
        paths: Files and folders.
        wanted: What to exclude, and where shown paths start.
        problems: Gets a sentence for each path that cannot be read.
        skipped: Gets the files and folders that are left out.
    """
    seen: set[str] = set()
    links: list[Path] = []
    for given in paths:
        path = Path(given)
        try:
            found = os.stat(path)
        except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
            problems.append(f"{printable(given)}: {_why_not(path, error)}")
            continue
        if not stat.S_ISDIR(found.st_mode):
            here: Iterable[Path] = [path] if _may_open(path, given, found, problems) else []
        else:
            here = list(_python_files(path, wanted, problems, skipped))
            if not here:
                problems.append(
                    f"{printable(given)}: no Python file is in it (or all are excluded)"
                )
        for file in here:
            if _is_excluded(file, wanted):
                continue
            if os.path.islink(file):
                links.append(file.absolute())
            else:
                yield from _once(file.absolute(), seen)
    for link in links:  # a file that is also there under its own name is read by that
        yield from _once(link, seen)


def neighbours(files: Iterable[Path], most: int) -> Iterator[list[Path]]:
    """Groups of neighbouring files, at most so many bytes together; a larger file is alone."""
    group: list[Path] = []
    size = 0
    for file in files:
        try:
            more = file.stat().st_size
        except OSError:  # told where it is read
            more = 0
        if group and size + more > most:
            yield group
            group, size = [], 0
        group.append(file)
        size += more
    yield group


def _once(file: Path, seen: set[str]) -> Iterator[Path]:
    real = os.path.realpath(file)
    if real not in seen:
        seen.add(real)
        yield file


def _why_not(path: Path, error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if isinstance(error, FileNotFoundError) and not path.is_symlink():
        return "no such file or folder"
    return unreadable(path, error)


def _may_open(path: Path, given: str, found: os.stat_result, problems: list[str]) -> bool:
    problem = irregular(path, found, MOST_SOURCE)
    if problem:
        problems.append(f"{printable(given)}: {problem}; it was not opened")
    return problem is None


def _python_files(
    folder: Path, wanted: Wanted, problems: list[str], skipped: list[NotChecked]
) -> Iterator[Path]:
    def leave_out(path: str, why: str) -> None:
        if not _is_excluded(Path(path), wanted):
            skipped.append(NotChecked(shown(Path(path).absolute(), wanted.root), 0, why))

    todo = [str(folder)]
    while todo:
        at = todo.pop()
        try:
            with os.scandir(at) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            where = shown(Path(at).absolute(), wanted.root)
            problems.append(
                f"{printable(where)}: {error.strerror}; nothing in this folder is checked"
            )
            continue
        folders = [entry for entry in found if entry.is_dir(follow_symlinks=False)]
        todo += [e.path for e in reversed(folders) if not _is_skipped(e.name, at)]
        for entry in found:
            is_read = entry.name.endswith((".py", _NOTEBOOK))
            if is_read and not entry.is_dir(follow_symlinks=False):
                why = _MACOS if entry.name.startswith("._") else _why_left_out(entry.path)
                if why is None:
                    yield Path(entry.path)
                else:
                    leave_out(entry.path, why)
            elif _is_linked_folder(entry) and not _is_skipped(entry.name, at):
                leave_out(entry.path, "a link to a folder, which is not followed")


def _is_skipped(name: str, parent: str) -> bool:
    return (
        name.startswith(".")
        or name in _SKIPPED_FOLDERS
        or name.endswith(".egg-info")
        or os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))
    )


def _is_linked_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_symlink() and entry.is_dir()
    except OSError:  # a loop of links
        return False


def _why_left_out(path: str) -> str | None:
    """The reason why a file of a tree is not opened; None: it may be."""
    try:
        return irregular(path, os.stat(path), MOST_SOURCE)
    except OSError as error:
        return unreadable(path, error)


def _is_excluded(path: Path, wanted: Wanted) -> bool:
    name = shown(path.absolute(), wanted.root)
    return any(
        fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, f"{pattern.rstrip('/')}/*")
        for pattern in wanted.exclude
    )


def shown(path: Path, root: Path) -> str:
    """A path as reports have it: from where the check was started, with `/`."""
    try:
        return path.relative_to(root.absolute()).as_posix()
    except ValueError:
        return path.as_posix()


def is_notebook(path: str | os.PathLike[str]) -> bool:
    """True if a file is a notebook, by its name."""
    return os.fspath(path).endswith(_NOTEBOOK)


def read_source(path: str | os.PathLike[str]) -> str:
    """The text of a file of Python, as Python reads it, or of a notebook.

    Bytes that are not in the encoding that the file declares are taken for Latin-1.

    Raises:
        OSError: It cannot be read.
        EncodingError: The encoding that it declares is not there, or is none of text.
        NotebookError: It is a notebook that cannot be read.
    """
    if is_notebook(path):
        from estimator2strategy.tools.reader import notebooks

        return notebooks.read(path).text
    data = read_bytes(path)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return io.TextIOWrapper(io.BytesIO(data), encoding).read()
    except UnicodeDecodeError:
        return data.decode("latin-1")
    except SyntaxError as error:
        if str(error).startswith("unknown encoding"):
            raise EncodingError(str(error)) from error
        return data.decode("latin-1")
    except (LookupError, UnicodeError) as error:  # rot13, undefined
        raise EncodingError(f"its encoding is none of text: {error}") from error


def comments(text: str) -> dict[int, str]:
    """The comment on each line that has one."""
    if "#" not in text:
        return {}
    found = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string
    except (tokenize.TokenError, SyntaxError):
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.search(r"#.*$", line):
                found[number] = match[0]
    return found


# The errors that `parse` raises of a text that is no Python 3.
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def parse(path: str, shown: str, text: str, *, again: bool = False) -> Source:
    """Reads a file's text; in half of the time `again`, when it is known to be right.

    Raises:
        SyntaxError: It is not Python 3.
        RecursionError, MemoryError: It is nested too deeply.
        ValueError: It contains null bytes.
    """
    with warnings.catch_warnings():
        patches.noted("warnings of source")
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
        if not again:  # for what is not of the grammar: a return outside, a late __future__
            compile(tree, shown, "exec", dont_inherit=True)
    return Source(path, shown, text, tree)
