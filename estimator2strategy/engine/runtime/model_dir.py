"""The folder that a training writes to: made, checked, and for one training at a time.

    with held_for_training(model_dir):
        ...

The lock is an advisory one on the folder itself: no file is added, and it goes with the process
that holds it, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from estimator2strategy.errors import ModelDirInUseError

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

# Descriptors with a lock on them. A forked process must not keep its parent's lock alive.
_held: set[int] = set()


def _let_go_of_the_parents_locks() -> None:
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_of_the_parents_locks)


@contextlib.contextmanager
def held_for_training(folder: str) -> Iterator[None]:
    """Makes `folder`, checks that one can write there, and keeps other trainings out of it.

    Folders on remote file systems (`gs://...`) are made, and no more.

    Raises:
        tf.errors.OpError: It cannot be made, or written to.
        ModelDirInUseError: Another training uses it.
    """
    _make(folder)
    if "://" in folder:
        yield
        return
    _check_writable(folder)
    descriptor = _locked(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            _held.discard(descriptor)
            os.close(descriptor)


def _make(folder: str) -> None:
    try:
        tf.io.gfile.makedirs(folder)
    except tf.errors.OpError as error:
        raise type(error)(
            None, None, f"model_dir {folder!r} cannot be made: {error.message}"
        ) from error


def _check_writable(folder: str) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise tf.errors.PermissionDeniedError(
            None, None, f"model_dir {folder!r} cannot be written to: {error.strerror}"
        ) from error


def _locked(folder: str) -> int | None:
    """A descriptor that holds the lock of `folder`; None where the file system has no locks."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        other = _holder(descriptor)
        os.close(descriptor)
        if not isinstance(error, BlockingIOError):
            return None
        raise ModelDirInUseError(
            f"model_dir {folder!r} is in use by another training: {other}.\n"
            "  Both would overwrite each other's checkpoints. Stop that one, or choose another "
            "model_dir."
        ) from error
    _held.add(descriptor)
    return descriptor


def _holder(descriptor: int) -> str:
    """The process that holds the lock, as far as /proc tells."""
    stat = os.fstat(descriptor)
    place = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()  # 1: FLOCK ADVISORY WRITE pid device:inode 0 EOF
            if fields[1] == "FLOCK" and fields[5] == place:
                return _described(int(fields[4]))
    return "a process that cannot be named"


def _described(process: int) -> str:
    if process == os.getpid():
        return f"this very process ({process})"
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ")
        return f"process {process} ({command.decode(errors='replace').strip()})"
    return f"process {process}"
