"""Puts new texts in the place of files: all of a run, or none of them.

All texts are written beside their files first. Only when that has gone well for all, the files are
exchanged, one after the other; if one cannot be, those before it get their old texts back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from estimator2strategy.tools.migrate.files import RefusedError, TextFile
from estimator2strategy.tools.untrusted.printable import printable
from estimator2strategy.tools.untrusted.regular_files import read_bytes

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
    found = path.stat()
    if not found.st_mode & _WRITABLE or not os.access(path, os.W_OK):
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
            os.chmod(temporary, stat.S_IMODE(found.st_mode))
            with contextlib.suppress(OSError):  # only root may give files away
                os.chown(temporary, found.st_uid, found.st_gid)
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
