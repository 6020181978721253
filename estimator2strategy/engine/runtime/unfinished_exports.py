"""Clears what an export that was killed has left beside the models that servers load.

    export/.exporting.temp-1700000000    there while a process that has its lock writes
    export/temp-1700000000/...           renamed to 1700000000 when it is complete

The first file is there before the folder, and until the folder has its name. If its lock is free,
the folder is nobody's any more. Any other folder stays: it may be what an older TensorFlow, or a
process of another machine, is writing.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

import tensorflow as tf

from estimator2strategy.engine.runtime.folder_lock import FolderLock, excludes_all
from estimator2strategy.engine.runtime.unfinished_saves import removed

tf1 = tf.compat.v1

_MARK = ".exporting."
_MARKS = re.compile(rf"{re.escape(_MARK)}temp-\d+")


@contextlib.contextmanager
def claimed(folder: str) -> Iterator[None]:
    """Marks a folder, which is not there yet, as one that this process makes, fills and renames.

    In the end the mark is gone; after an error, so is the folder.
    """
    base, name = os.path.split(folder)
    mark = os.path.join(base, _MARK + name)
    lock = None if "://" in folder else _locked(mark)
    try:
        yield
    except BaseException:
        if lock is not None and os.path.isdir(folder):
            with contextlib.suppress(OSError):
                removed(folder)
        raise
    finally:
        if lock is not None:
            with contextlib.suppress(OSError):
                os.remove(mark)
            lock.release()


def _locked(mark: str) -> FolderLock | None:
    """Makes a mark, and takes its lock; None where that cannot be done."""
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(mark), exist_ok=True)
        while True:
            open(mark, "w").close()
            lock = _lock_of(mark)
            if lock is None:  # without a lock, others would take it for one that was left
                os.remove(mark)
            elif not lock.is_of(mark):  # they did, and removed it
                lock.release()
                continue
            return lock
    return None


def clear(base: str) -> None:
    """Removes the unfinished folders in `base` of processes that were killed."""
    if "://" in base or not os.path.isdir(base):
        return
    marks = [name for name in os.listdir(base) if _MARKS.fullmatch(name)]
    if marks and excludes_all(base):
        for mark in marks:
            _clear_if_nobodys(os.path.join(base, mark[len(_MARK) :]), os.path.join(base, mark))


def clear_below(model_dir: str) -> None:
    """Calls `clear` where exporters of `EvalSpec` write: in each folder of `model_dir`/export."""
    exports = os.path.join(model_dir, "export")
    if "://" not in model_dir and os.path.isdir(exports):
        for name in os.listdir(exports):
            clear(os.path.join(exports, name))


def _clear_if_nobodys(folder: str, mark: str) -> None:
    lock = _lock_of(mark)
    if lock is None:
        return
    try:
        if not lock.is_of(mark):  # its owner, or another process, has removed it meanwhile
            return
        if os.path.isdir(folder) and not os.path.islink(folder):
            size = removed(folder)
            tf1.logging.info(
                "Removed %s, of an export that was killed: %.1f MB.", folder, size / 2**20
            )
        os.remove(mark)
    except OSError as error:
        tf1.logging.warn("Of an export that was killed files stay in %s: %s", folder, error)
    finally:
        lock.release()


def _lock_of(mark: str) -> FolderLock | None:
    """The lock of a mark; None if it has an owner, has none, or is gone."""
    try:
        return FolderLock.of_folder(mark)
    except OSError:
        return None
