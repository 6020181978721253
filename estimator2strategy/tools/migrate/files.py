"""Reads the user's files, and refuses to write those that could not be brought back.

A file must not have changed since the last dry run of the same changes showed it. In a git
repository git must be able to bring its text back.

Puts new texts in the place of files: all of a run, or none of them.

All texts are written beside their files first. Only when that has gone well for all, the files are
exchanged, one after the other; if one cannot be, those before it get their old texts back.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import hashlib
import io
import json
import os
import stat
import subprocess
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from estimator2strategy.tools.reader import notebooks
from estimator2strategy.tools.reader.python_files import is_notebook
from estimator2strategy.tools.untrusted.printable import printable
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

    notebook: notebooks.Notebook = dataclasses.field(hash=False)

    def encoded(self, text: str) -> bytes:
        return self.data if text == self.text else self.notebook.with_text(text)


def read(path: Path) -> TextFile:
    """Reads a file as Python does; of a notebook, the cells.

    Raises:
        NotebookError: It is a notebook that cannot be read.
        OSError: It cannot be read.
        SyntaxError: Its encoding is not what it says, or cannot be written again.
    """
    if is_notebook(path):
        notebook = notebooks.read(path)
        return NotebookFile(path, notebook.text, notebook.data, "utf-8", notebook)
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
    tops: dict[str, TextFile] = {}
    for folder, within in sorted(_by_folder(files).items()):
        top = _git(folder, "rev-parse", "--show-toplevel")
        if top is None:
            raise RefusedError(
                f"{folder} is not in a git repository, so that nothing would bring back what is "
                "there now. Commit it to one, or add --allow-dirty."
            )
        tops.setdefault(top, within[0])
    for top in tops:
        changed = _git(Path(top), "status", "--porcelain", "--untracked-files=no") or ""
        if changed.strip():
            names = ", ".join(line[3:] for line in changed.splitlines()[:3])
            raise RefusedError(
                f"{top} has changes that are not committed ({names}). Commit or stash them, so "
                "that git can tell them from these; or add --allow-dirty."
            )
    for folder, within in _by_folder(files).items():
        known = set((_git(folder, "ls-files", "-z", ".") or "").split("\0"))
        for file in within:
            if os.path.basename(os.path.realpath(file.path)) not in known:
                raise RefusedError(
                    f"{file.path} is not in git yet. Commit it; or add --allow-dirty."
                )


def _by_folder(files: Iterable[TextFile]) -> dict[Path, list[TextFile]]:
    """Files by the folder that they are in, links followed."""
    folders: dict[Path, list[TextFile]] = {}
    for file in files:
        folders.setdefault(Path(os.path.realpath(file.path)).parent, []).append(file)
    return folders


def remember(files: Iterable[TextFile], changes: str) -> None:
    """Keeps what a dry run has shown the user: the files as they are now.

    Args:
        files: The files.
        changes: The names of the codemods, and the tier, of the dry run.
    """
    _update({file: {"changes": changes, "digest": file.digest} for file in files})


def forget(files: Iterable[TextFile]) -> None:
    """Files have been written; the next change to them may be seen or not."""
    _update(dict.fromkeys(files))


def check_as_shown(files: Iterable[TextFile], changes: str) -> None:
    """Compares with the last dry run of the same changes, where there was one.

    Raises:
        RefusedError: A file has changed since.
    """
    for record, within in _by_record(files).items():
        records = _records(record)
        for file in within:
            shown = records.get(str(file.path.resolve()))
            if not isinstance(shown, dict) or shown.get("changes") != changes:
                continue
            if shown.get("digest") != file.digest:
                raise RefusedError(
                    f"{file.path} has changed since the dry run. Look at the changes again (the "
                    "same command without --write), then write."
                )


def _records(path: Path) -> dict[str, Any]:
    try:
        records = json.loads(read_bytes(path, _MOST_RECORDS))
    except (OSError, ValueError, RecursionError):
        return {}
    return records if isinstance(records, dict) else {}


def _update(shown: dict[TextFile, dict[str, str] | None]) -> None:
    for path, files in _by_record(shown).items():
        records = _records(path)
        for file in files:
            records.pop(str(file.path.resolve()), None)
            if shown[file] is not None:
                records[str(file.path.resolve())] = shown[file]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(records, indent=0), encoding="utf-8")
        except OSError:
            pass  # a repository that cannot be written to: then there is nothing to refuse either


def _by_record(files: Iterable[TextFile]) -> dict[Path, list[TextFile]]:
    """Files by the path of the record that tells of them."""
    records: dict[Path, list[TextFile]] = {}
    for folder, within in _by_folder(files).items():
        records.setdefault(_record_path(folder), []).extend(within)
    return records


def _record_path(folder: Path) -> Path:
    """The path of a record: in the repository's .git, or in the user's cache."""
    inside = _git(folder, "rev-parse", "--git-path", "e2s-migrate.json")
    if inside is not None:
        return Path(os.path.normpath(folder / inside.strip()))
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


_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_NOTHING = "nothing was written"


@dataclasses.dataclass(frozen=True)
class _Exchange:
    """A file, and what is beside it while it is exchanged: its new text, and its old one."""

    file: TextFile
    path: Path
    new: str
    old: str


def replace_all(texts: Iterable[tuple[TextFile, str]]) -> None:
    """Writes texts in the place of what was read, with the files' modes.

    Args:
        texts: Each file, and its new text.

    Raises:
        RefusedError: A file may not be written, has changed since it was read, or there is no room
            for it; says which and why. All files are as they were.
    """
    made: list[_Exchange] = []
    try:
        for file, text in texts:
            with _reasons(file):
                made.append(_prepared(file, text))
        for exchange in made:
            with _reasons(exchange.file):
                _check_is_as_read(exchange)
        _exchange(made)
    finally:
        for exchange in made:
            for path in (exchange.new, exchange.old):
                with contextlib.suppress(OSError):
                    os.unlink(path)


def _prepared(file: TextFile, text: str) -> _Exchange:
    """Writes the new and the old text beside a file."""
    path = Path(os.path.realpath(file.path))
    status = path.stat()
    if not status.st_mode & _WRITABLE or not os.access(path, os.W_OK):
        raise RefusedError(f"{printable(str(file.path))} may not be written; {_NOTHING}")
    written: list[str] = []
    try:
        for data in (file.encoded(text), file.data):
            handle, temporary = tempfile.mkstemp(prefix=".e2s_", suffix=".tmp", dir=path.parent)
            written.append(temporary)
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, stat.S_IMODE(status.st_mode))
            with contextlib.suppress(OSError):  # only root may give files away
                os.chown(temporary, status.st_uid, status.st_gid)
    except BaseException:
        for temporary in written:
            os.unlink(temporary)
        raise
    return _Exchange(file, path, *written)


def _check_is_as_read(exchange: _Exchange) -> None:
    if read_bytes(exchange.path) != exchange.file.data:
        name = printable(str(exchange.file.path))
        raise RefusedError(f"{name} was changed by somebody else just now; {_NOTHING}")


def _exchange(made: Sequence[_Exchange]) -> None:
    done: list[_Exchange] = []
    try:
        for exchange in made:
            with _reasons(exchange.file):
                done.append(exchange)
                os.replace(exchange.new, exchange.path)
    except BaseException:
        for exchange in reversed(done):
            if not os.path.exists(exchange.new):  # it was exchanged
                os.replace(exchange.old, exchange.path)
        raise


@contextlib.contextmanager
def _reasons(file: TextFile) -> Iterator[None]:
    """Says of which file an error of the system is."""
    try:
        yield
    except OSError as error:
        name = printable(str(file.path))
        raise RefusedError(f"{name} cannot be written: {error.strerror}; {_NOTHING}") from error
