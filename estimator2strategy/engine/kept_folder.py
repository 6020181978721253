"""The folder in which a process keeps what later processes of the same user need not make again.

    folder = folder_of("jax")     # a Path; None: nothing is kept
    write(folder / "a.step", b"...")
    drop_oldest(folder, 1 << 28)

It is `estimator2strategy` in the user's folder for caches (XDG_CACHE_HOME, or ~/.cache), or the
folder that E2S_CACHE names; E2S_CACHE=off keeps nothing. Nobody else may write there, because what
is loaded is code. TensorFlow is not needed here.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

VARIABLE = "E2S_CACHE"

# Folder -> its content.
KINDS = {
    "jax": "steps, as XLA's programs and as JAX has compiled them",
}
_TEMPORARY = ".new-"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Kept(NamedTuple):
    """A file that is kept: its path, its size in bytes, and when it was last used."""

    path: Path
    size: int
    used: float


def root() -> Path | None:
    """The folder of all that is kept, which need not be there; None: nothing is to be kept."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "estimator2strategy").expanduser()


def folder_of(kind: str) -> Path | None:
    """The folder of one of KINDS, made if needed; None: nothing is kept, or others may write."""
    above = root()
    if above is None:
        return None
    folder = above / kind
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = folder.stat()
    except (OSError, RuntimeError):  # of a user without a home, say
        return None
    if state.st_uid != os.getuid() or state.st_mode & _OTHERS:
        _warn_of_others(folder)
        return None
    return folder if os.access(folder, os.W_OK) else None


@functools.cache
def _warn_of_others(folder: Path) -> None:
    logging.getLogger("tensorflow").warning(
        "Nothing is kept for later processes: others may write to %s. Make it yours alone "
        "(chmod go-w), or set %s=off.",
        folder,
        VARIABLE,
    )


def write(path: Path, data: bytes) -> bool:
    """Writes a file at once, as far as other processes see; returns False if it cannot be."""
    name = ""
    try:
        number, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)  # the owner's alone
        with open(number, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        if name:
            with contextlib.suppress(OSError):
                os.unlink(name)
        return False
    return True


def note_use(path: Path) -> None:
    """Makes a file the one that is dropped last."""
    with contextlib.suppress(OSError):
        os.utime(path)


def files(folder: Path) -> list[Kept]:
    """The files in a folder, the one that was not used for longest first."""
    entries = []
    with contextlib.suppress(OSError):
        for path in folder.rglob("*"):
            with contextlib.suppress(OSError):  # another process may have deleted it
                state = path.stat()
                if stat.S_ISREG(state.st_mode):
                    used = max(state.st_atime, state.st_mtime)
                    entries.append(Kept(path, state.st_size, used))
    return sorted(entries, key=lambda kept: kept.used)


def drop_oldest(folder: Path, limit: int) -> None:
    """Deletes what was not used for longest, until no more than `limit` bytes are left."""
    kept = files(folder)
    size = sum(file.size for file in kept)
    for file in kept:
        if size <= limit:
            break
        with contextlib.suppress(OSError):
            file.path.unlink()
        size -= file.size


def clear(folder: Path) -> None:
    """Deletes a folder of what is kept; a process that reads there makes its own again."""
    shutil.rmtree(folder, ignore_errors=True)
