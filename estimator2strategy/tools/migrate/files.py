"""Reads the user's files, and refuses to write those that could not be brought back.

A file must not have changed since the last dry run of the same changes showed it. In a git
repository git must be able to bring its text back.
"""

from __future__ import annotations

import codecs
import dataclasses
import hashlib
import io
import json
import os
import subprocess
import tokenize
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from estimator2strategy.tools.check import notebooks
from estimator2strategy.tools.untrusted.regular_files import read_bytes

# Of the record of dry runs.
_MOST_RECORDS = 100_000_000


class RefusedError(Exception):
    """Files are not written; the message says why, and what to do."""


@dataclasses.dataclass(frozen=True)
class TextFile:
    """A file of Python, with all that is needed to write it back as it was.

    Attributes:
        path: Its path.
        text: Its text, with the line ends that it has.
        data: Its bytes.
        encoding: As Python reads it; a byte order mark is not part of `text`.
    """

    path: Path
    text: str
    data: bytes
    encoding: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def encoded(self, text: str) -> bytes:
        """The bytes of another text of this file."""
        if self.encoding == "utf-8-sig":
            return codecs.BOM_UTF8 + text.encode()
        return text.encode(self.encoding)


@dataclasses.dataclass(frozen=True)
class NotebookFile(TextFile):
    """A notebook; `text` has its cells, one after the other."""

    notebook: notebooks.Notebook

    def encoded(self, text: str) -> bytes:
        return self.data if text == self.text else self.notebook.with_text(text)


def read(path: Path) -> TextFile:
    """Reads a file as Python does; of a notebook, the cells.

    Raises:
        NotebookError: It is a notebook that cannot be read.
        OSError: It cannot be read.
        SyntaxError: Its encoding is not what it says, or cannot be written again.
    """
    if notebooks.is_notebook(path):
        found = notebooks.read(path)
        return NotebookFile(path, found.text, found.data, "utf-8", found)
    data = read_bytes(path)
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    try:
        file = TextFile(path, data.decode(encoding), data, encoding)
        is_same = file.encoded(file.text) == data
    except (LookupError, UnicodeError) as error:  # rot13, undefined
        raise SyntaxError(str(error)) from error
    if not is_same:  # unicode_escape
        raise SyntaxError(f"{encoding} would not bring back the bytes that are there")
    return file


def check_clean(files: Sequence[TextFile]) -> None:
    """Sees to it that git can bring back what is about to be written.

    Raises:
        RefusedError: It cannot, for the reason that the message gives.
    """
    for folder in sorted({Path(os.path.realpath(file.path)).parent for file in files}):
        top = _git(folder, "rev-parse", "--show-toplevel")
        if top is None:
            raise RefusedError(
                f"{folder} is not in a git repository, so that nothing would bring back what is "
                "there now. Commit it to one, or add --allow-dirty."
            )
    tops = {_git(Path(os.path.realpath(f.path)).parent, "rev-parse", "--show-toplevel"): f
            for f in files}  # fmt: skip
    for top in filter(None, tops):
        changed = _git(Path(top), "status", "--porcelain", "--untracked-files=no") or ""
        if changed.strip():
            names = ", ".join(line[3:] for line in changed.splitlines()[:3])
            raise RefusedError(
                f"{top} has changes that are not committed ({names}). Commit or stash them, so "
                "that git can tell them from these; or add --allow-dirty."
            )
    for file in files:
        path = Path(os.path.realpath(file.path))
        if _git(path.parent, "ls-files", "--error-unmatch", path.name) is None:
            raise RefusedError(f"{file.path} is not in git yet. Commit it; or add --allow-dirty.")


def remember(files: Iterable[TextFile], changes: str) -> None:
    """Keeps what a dry run has shown the user: the files as they are now.

    Args:
        files: The files.
        changes: The names of the codemods, and the tier, of the dry run.
    """
    for file in files:
        _update(file, {"changes": changes, "digest": file.digest})


def forget(file: TextFile) -> None:
    """A file has been written; the next change to it may be seen or not."""
    _update(file, None)


def check_as_shown(files: Iterable[TextFile], changes: str) -> None:
    """Compares with the last dry run of the same changes, where there was one.

    Raises:
        RefusedError: A file has changed since.
    """
    for file in files:
        shown = _records(file).get(str(file.path.resolve()))
        if not isinstance(shown, dict) or shown.get("changes") != changes:
            continue
        if shown.get("digest") != file.digest:
            raise RefusedError(
                f"{file.path} has changed since the dry run. Look at the changes again (the same "
                "command without --write), then write."
            )


def _records(file: TextFile) -> dict[str, Any]:
    try:
        found = json.loads(read_bytes(_record_path(file), _MOST_RECORDS))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _update(file: TextFile, shown: dict[str, str] | None) -> None:
    records = _records(file)
    records.pop(str(file.path.resolve()), None)
    if shown is not None:
        records[str(file.path.resolve())] = shown
    path = _record_path(file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(records, indent=0), encoding="utf-8")
    except OSError:
        pass  # a repository that cannot be written to: then there is nothing to refuse either


def _record_path(file: TextFile) -> Path:
    """The path of the record: in the repository's .git, or in the user's cache."""
    folder = Path(os.path.realpath(file.path)).parent
    inside = _git(folder, "rev-parse", "--git-path", "e2s-migrate.json")
    if inside is not None:
        return folder / inside.strip()
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache) / "estimator2strategy" / "migrate.json"


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of git; None if it fails, or is not installed."""
    try:
        # A repository of a stranger may name a program as its monitor of files.
        result = subprocess.run(
            ["git", "-C", str(folder), "-c", "core.fsmonitor=false", *arguments],
            capture_output=True,
            check=False,
        )
    except OSError:
        return None
    return os.fsdecode(result.stdout).rstrip("\n") if result.returncode == 0 else None
