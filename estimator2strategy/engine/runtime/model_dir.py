"""The folder that a training writes to: made, checked, and for one training at a time.

    with held_for_training(model_dir):
        ...

The lock is an advisory one on the folder itself: no file is added, and it goes with the process
that holds it, however that ends. What a killed training left half written is removed then.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from estimator2strategy.engine.runtime import unfinished_exports, unfinished_saves
from estimator2strategy.engine.runtime.folder_lock import FolderLock
from estimator2strategy.engine.runtime.input_position import PositionFiles
from estimator2strategy.errors import ModelDirInUseError


@contextlib.contextmanager
def held_for_training(folder: str) -> Iterator[None]:
    """Makes `folder`, checks that one can write there, and keeps other trainings out of it.

    Unfinished checkpoints and exports of processes that were killed are removed.

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
    lock = _locked(folder)
    try:
        _clear(folder)
        yield
    finally:
        if lock:
            lock.release()


def clear_if_free(folder: str) -> None:
    """Removes the files of a training that was killed at its end, if no training holds the folder.

    If no training starts there again, nobody else would remove them.
    """
    if "://" in folder:
        return
    # Nothing is lost where the folder may not be written to.
    with contextlib.suppress(OSError, tf.errors.OpError):
        if lock := FolderLock.of_folder(folder):
            try:
                PositionFiles(folder).remove_all()
                _clear(folder)
            finally:
                lock.release()


def _clear(folder: str) -> None:
    unfinished_saves.clear(folder)
    unfinished_exports.clear_below(folder)


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


def _locked(folder: str) -> FolderLock | None:
    """The lock of `folder`; None where the file system has no locks."""
    try:
        return FolderLock.of_folder(folder)
    except BlockingIOError as error:
        raise ModelDirInUseError(
            f"model_dir {folder!r} is in use by another training: {_holder(folder)}.\n"
            "  Both would overwrite each other's checkpoints. Stop that one, or choose another "
            "model_dir."
        ) from error


def _holder(folder: str) -> str:
    """The process that holds the lock, as far as /proc tells."""
    stat = os.stat(folder)
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
