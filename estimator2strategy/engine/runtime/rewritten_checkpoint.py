"""Keeps a checkpoint whole while it is written again under its own name.

    .saving.model.ckpt-200.before/    links to the files of model.ckpt-200, as they were

A training that is resumed saves the step that it restored, as the original did, if its variables
differ from those of the checkpoint (`unchanged_checkpoint`). The saver renames the new data to the
name of the old, and then the new index. After a kill between the two the old index does not fit the
new data; and this may be the only checkpoint. So the files that were there before are put back as
soon as somebody looks for a checkpoint, and nobody writes.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil

import tensorflow as tf

from estimator2strategy.engine.runtime.folder_lock import FolderLock, excludes_all

tf1 = tf.compat.v1

MARK = ".saving."
_BEFORE = ".before"
_KEPT = re.compile(rf"{re.escape(MARK)}.+-\d+{re.escape(_BEFORE)}")


def keep(checkpoint: str, mark: str) -> None:
    """Links the files of a checkpoint that is about to be written again; no copy is made.

    Args:
        checkpoint: The path of the checkpoint, without endings. It may not be there.
        mark: The path of the mark of its writing.
    """
    names = _files(checkpoint)
    if f"{os.path.basename(checkpoint)}.index" not in names:
        return
    folder = os.path.dirname(checkpoint)
    with contextlib.suppress(OSError):  # a file system without links
        os.mkdir(mark + _BEFORE)
        for name in sorted(names):  # the index comes last: with it all are there
            os.link(os.path.join(folder, name), os.path.join(mark + _BEFORE, name))


def put_back_all(folder: str) -> None:
    """Puts back what was killed in a folder, unless a training holds it."""
    try:
        names = [name for name in os.listdir(folder) if _KEPT.fullmatch(name)]
    except OSError:  # no folder, or no local one
        return
    if not names or not excludes_all(folder):
        return
    try:
        lock = FolderLock.of_folder(folder)
    except OSError:  # somebody writes
        return
    if lock is None:
        return
    try:
        for name in names:
            mark = os.path.join(folder, name.removesuffix(_BEFORE))
            put_back(os.path.join(folder, name[len(MARK) : -len(_BEFORE)]), mark)
    except OSError as error:
        tf1.logging.warn("A checkpoint cannot be put back as it was in %s: %s", folder, error)
    finally:
        lock.release()


def forget(mark: str) -> None:
    """Removes the kept files, because the checkpoint is complete."""
    shutil.rmtree(mark + _BEFORE, ignore_errors=True)


def put_back(checkpoint: str, mark: str) -> None:
    """Gives a checkpoint its old files back, after a kill while it was written again.

    Raises:
        OSError: It cannot be done.
    """
    kept, folder = mark + _BEFORE, os.path.dirname(checkpoint)
    names = os.listdir(kept) if os.path.isdir(kept) else []
    if f"{os.path.basename(checkpoint)}.index" in names:
        for name in names:
            _remove(link := f"{mark}.link")
            os.link(os.path.join(kept, name), link)
            os.replace(link, os.path.join(folder, name))
            _remove(link)  # it stays where both are links to the same file already
        for name in _files(checkpoint) - set(names):  # of another number of shards
            os.remove(os.path.join(folder, name))
    forget(mark)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def _files(checkpoint: str) -> set[str]:
    """Returns the names of a checkpoint's data files and its index."""
    folder, prefix = os.path.split(checkpoint)
    pattern = re.compile(rf"{re.escape(prefix)}\.(data-\d+-of-\d+|index)")
    return {name for name in os.listdir(folder) if pattern.fullmatch(name)}
