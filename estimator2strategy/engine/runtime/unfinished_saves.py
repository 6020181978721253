"""Clears what a training that was killed while it saved has left in its model_dir.

    .saving.model.ckpt-200          there while the training that holds the folder writes one
    .saving.model.ckpt-200.before/  the files that it had before, if it is written again
    model.ckpt-200_temp/...         what the saver had written of it

The first file names the checkpoints that the saver may remove then, to keep `keep_checkpoint_max`.

A training makes it only while it holds the lock of the folder, and the lock goes with
its process. So whoever gets the lock, and finds that file, knows that nobody writes that checkpoint
any more. What no such file names stays, as it may be the work of a program that takes no lock: an
older TensorFlow, a saver of somebody's own. So does all where locks do not reach every machine
(`folder_lock.excludes_all`).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.runtime import rewritten_checkpoint
from estimator2strategy.engine.runtime.folder_lock import excludes_all, is_held
from estimator2strategy.engine.runtime.latest_checkpoint import is_complete, listed_names
from estimator2strategy.engine.runtime.rewritten_checkpoint import MARK

tf1 = tf.compat.v1

_MARKED = re.compile(re.escape(MARK) + r"(.+-\d+)")
_FINAL = re.compile(r"(.+-\d+)\.(data-\d+-of-\d+|index|meta)")
_CLOCKS_DIFFER = 600.0  # seconds, at most: of this machine and of the one that has the files
# TensorFlow writes such a file and renames it to `checkpoint`; that takes milliseconds.
_LIST = re.compile(r"checkpoint\.tmp[0-9a-f]{32}")
_LIST_SECONDS = 1.0


class SaveMarker(tf1.train.CheckpointSaverListener):
    """Marks the checkpoint that is being written; `after_save` may be called in another thread.

    Args:
        folder: The model_dir.
        prefix: The name of its checkpoints, up to the dash before the step.
        saver_of: Gives the Saver that writes them.
    """

    def __init__(self, folder: str, prefix: str, saver_of: Callable[[], Any]):
        self._folder = folder
        self._prefix = prefix
        self._saver_of = saver_of

    @classmethod
    def attach(cls, folder: str, hooks: Iterable[tf1.train.SessionRunHook]) -> None:
        """Adds a marker to each hook that writes checkpoints to the folder."""
        for hook in hooks:
            if not isinstance(hook, tf1.train.CheckpointSaverHook):
                continue
            prefix = os.path.basename(hook._save_path)
            if hook._save_path == os.path.join(folder, prefix):
                earlier = [x for x in hook._listeners if not isinstance(x, SaveMarker)]
                hook._listeners[:] = [cls(folder, prefix, hook._get_saver), *earlier]

    def before_save(self, session: tf1.Session, global_step_value: int) -> None:
        del session
        if is_held(self._folder):
            with (
                contextlib.suppress(OSError),  # of a full disk the saver itself tells
                open(self._mark(global_step_value), "w") as file,
            ):
                file.write("".join(f"{name}\n" for name in _removable(self._saver_of())))
            checkpoint = os.path.join(self._folder, f"{self._prefix}-{int(global_step_value)}")
            rewritten_checkpoint.keep(checkpoint, self._mark(global_step_value))

    def after_save(self, session: tf1.Session, global_step_value: int) -> None:
        del session
        self._remove(global_step_value)

    def not_saved(self, step: int) -> None:
        """Called when a checkpoint could not be written, and its files are removed."""
        self._remove(step)

    def _remove(self, step: int) -> None:
        rewritten_checkpoint.forget(self._mark(step))
        with contextlib.suppress(OSError):
            os.remove(self._mark(step))

    def _mark(self, step: int) -> str:
        return os.path.join(self._folder, f"{MARK}{self._prefix}-{int(step)}")


def _removable(saver: Any) -> list[str]:
    """The checkpoints that a Saver can remove while it saves, and not only take off its list."""
    # It keeps one for good when so many hours (`keep_checkpoint_every_n_hours`) have passed.
    kept_from = getattr(saver, "_next_checkpoint_time", 0.0)
    if not isinstance(saver, tf1.train.Saver) or time.time() > kept_from - _CLOCKS_DIFFER:
        return []
    return list(map(os.path.basename, saver.last_checkpoints))


def clear(folder: str) -> None:
    """Removes unfinished checkpoints of earlier trainings. The caller holds the folder's lock."""
    if not is_held(folder):
        return
    names = os.listdir(folder)
    marked = [match[1] for name in names if (match := _MARKED.fullmatch(name))]
    if not marked:
        return
    if not excludes_all(folder):
        tf1.logging.warn(
            "A training was killed while it saved %s, and left files of it in %s. They stay: it is "
            "not certain that locks on this file system keep all other machines out.",
            ", ".join(marked),
            folder,
        )
        return
    listed = listed_names(folder)
    doomed = [name for name in names if _LIST.fullmatch(name) and _has_settled(folder, name)]
    try:
        for prefix in marked:
            mark = os.path.join(folder, MARK + prefix)
            rewritten_checkpoint.put_back(os.path.join(folder, prefix), mark)
            doomed += _unfinished(folder, prefix, names, listed)
            doomed += _half_removed(folder, prefix, names, listed)
        size = sum(removed(os.path.join(folder, name)) for name in doomed)
        for prefix in marked:
            os.remove(os.path.join(folder, MARK + prefix))
    except OSError as error:
        tf1.logging.warn("Of a training that was killed files stay in %s: %s", folder, error)
        return
    if doomed:
        tf1.logging.info(
            "Removed what a training that was killed left of %s in %s: %.1f MB.",
            ", ".join(marked),
            folder,
            size / 2**20,
        )


def _unfinished(folder: str, prefix: str, names: list[str], listed: set[str]) -> list[str]:
    """The files of a checkpoint whose writing was killed; those of a complete one stay."""
    beginning = re.escape(prefix)
    temporary = re.compile(
        rf"{beginning}(_temp|\.(data-\d+-of-\d+|index)\.tempstate\d+|\.meta\.tmp[0-9a-f]{{32}})"
    )
    left_over = [name for name in names if temporary.fullmatch(name)]
    # A listed one stays even if it is damaged: its owner is told, and may want to save it.
    if prefix not in listed and not is_complete(os.path.join(folder, prefix)):
        left_over += [
            name for name in names if (its := _FINAL.fullmatch(name)) and its[1] == prefix
        ]
    return left_over


def _half_removed(folder: str, prefix: str, names: list[str], listed: set[str]) -> list[str]:
    """The files of checkpoints that the saver had taken off its list, and was about to remove.

    They are older than all that are listed: a list that is, after a power failure, an old one or
    none at all condemns nothing.
    """
    with open(os.path.join(folder, MARK + prefix), errors="replace") as file:
        removable = set(file.read().splitlines()) - listed
    steps = [_step_of(name) for name in listed]
    gone = {name for name in removable if steps and _step_of(name) < min(steps)}
    return [name for name in names if (found := _FINAL.fullmatch(name)) and found[1] in gone]


def _step_of(checkpoint: str) -> int:
    """The step in a checkpoint's name; of one without a step, one before all others."""
    step = checkpoint.rpartition("-")[2]
    return int(step) if step.isdecimal() else -1


def _has_settled(folder: str, name: str) -> bool:
    """True for a file that nobody can be about to rename: it waits until it is old enough."""
    path = os.path.join(folder, name)
    time.sleep(_LIST_SECONDS)
    with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=folder) as now:
        # By the clock of the file system, which may be another machine's.
        return os.fstat(now.fileno()).st_mtime - os.stat(path).st_mtime >= _LIST_SECONDS
    return False


def removed(path: str) -> int:
    """Removes a file or a folder, and returns its bytes. A link is never followed."""
    if not os.path.isdir(path) or os.path.islink(path):
        size = os.lstat(path).st_size
        os.remove(path)
        return size
    inside = [os.path.join(folder, n) for folder, _, names in os.walk(path) for n in names]
    size = sum(os.lstat(name).st_size for name in inside)
    shutil.rmtree(path)
    return size
