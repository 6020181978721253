"""Clears what an export that was killed has left beside the models that servers load.

    export/temp-1700000000/.exporting    there while a process writes, and holds the folder's lock
    export/temp-1700000000/...           renamed to 1700000000 when it is complete

A folder with that file whose lock is free is nobody's any more. Any other stays: it may be what an
older TensorFlow, or a process of another machine, is writing.
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

_MARK = ".exporting"
_UNFINISHED = re.compile(r"temp-\d+")


@contextlib.contextmanager
def claimed(folder: str) -> Iterator[None]:
    """Marks an empty folder as one that this process writes to, as long as it lives.

    In the end the mark is gone; after an error, so is the folder.
    """
    lock = None if "://" in folder else _lock_of(folder)
    if lock is None:
        yield
        return
    mark = os.path.join(folder, _MARK)
    with contextlib.suppress(OSError):
        open(mark, "w").close()  # not before the lock: a mark without one means that it may go
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            removed(folder)
        raise
    else:
        with contextlib.suppress(OSError):
            os.remove(mark)
    finally:
        lock.release()


def clear(base: str) -> None:
    """Removes the unfinished folders in `base` of processes that were killed."""
    if "://" in base or not os.path.isdir(base):
        return
    names = [name for name in os.listdir(base) if _UNFINISHED.fullmatch(name)]
    if names and excludes_all(base):
        for name in names:
            _clear_if_nobodys(os.path.join(base, name))


def clear_below(model_dir: str) -> None:
    """Does so where the exporters of `EvalSpec` write: in each folder of `model_dir`/export."""
    exports = os.path.join(model_dir, "export")
    if "://" not in model_dir and os.path.isdir(exports):
        for name in os.listdir(exports):
            clear(os.path.join(exports, name))


def _clear_if_nobodys(folder: str) -> None:
    mark = os.path.join(folder, _MARK)
    if not os.path.exists(mark) or os.path.islink(folder):
        return
    lock = _lock_of(folder)
    if lock is None:
        return
    try:
        # Meanwhile its owner may have completed and renamed it, or another process removed it.
        if lock.is_of(folder) and os.path.exists(mark):
            size = removed(folder)
            tf1.logging.info(
                "Removed %s, of an export that was killed: %.1f MB.", folder, size / 2**20
            )
    except OSError as error:
        tf1.logging.warn("Of an export that was killed files stay in %s: %s", folder, error)
    finally:
        lock.release()


def _lock_of(folder: str) -> FolderLock | None:
    """The lock of a folder; None if it has an owner, has none, or is gone."""
    try:
        return FolderLock.of(folder)
    except OSError:
        return None
