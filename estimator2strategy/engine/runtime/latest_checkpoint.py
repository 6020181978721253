"""Chooses the checkpoint to go on from: the latest complete one in a folder.

If a process was killed, or a disk was full, while a checkpoint was written, that checkpoint is
passed over with a line in the log. Its files stay. If the list of checkpoints cannot be read, those
in the folder are taken.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import glob
import itertools
import os
import re
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import tensorflow as tf

from estimator2strategy.engine.runtime import checkpoints, rewritten_checkpoint
from estimator2strategy.errors import CheckpointError

tf1 = tf.compat.v1

T = TypeVar("T")
_Files: TypeAlias = tuple[tuple[int, int], ...]

_MOST_NAMED = 5
_GONE = (FileNotFoundError, tf.errors.NotFoundError)
# The pattern for the shards of a checkpoint of the V1 format, which stands for its path.
_V1_SHARDS = re.compile(r"(.*?)(-\?{5}-of-\d{5})?", re.DOTALL)
_OF_STEP = re.compile(r"(.*-(\d+))\.index", re.DOTALL)

# Of the latest ones, (path, sizes and times of its files): who changes a file changes these.
_written: collections.deque[tuple[str, _Files]] = collections.deque(maxlen=64)


def latest_checkpoint(folder: str) -> str | None:
    """Path of the latest complete checkpoint that the `checkpoint` file of `folder` lists.

    Returns:
        None if nothing is listed, or if no file is there of all that is listed.

    Raises:
        CheckpointError: There are files, but none that can be used.
    """
    listed = _listed(folder)
    if any(map(_files, listed)):
        return checkpoints_up_to_latest(folder)[-1]
    if listed and (usable := _usable(folder)):
        _say_once(f"No file is there of what {folder}/checkpoint lists. {usable}")
    return None


def checkpoints_up_to_latest(folder: str) -> list[str]:
    """The listed checkpoints up to the latest complete one, which is the last of them.

    Those before it are not looked into.

    Raises:
        CheckpointError: Checkpoints are listed, but none that can be used.
    """
    paths, defects = _up_to_latest(folder)
    if defects and not paths:  # a trainer may have removed them, and has written others
        paths, defects = _up_to_latest(folder)
    why = "\n".join(f"  {path}: {defect}" for path, defect in defects.items())
    if defects and not paths:
        raise CheckpointError(
            f"None of those that {folder}/checkpoint lists is a valid checkpoint:\n{why}\n"
            "  Put back a copy of one of them, or remove the file 'checkpoint' to start anew. "
            f"{_usable(folder)}".rstrip()
        )
    if defects:
        _say_once(f"Passing over what cannot be used, {paths[-1]} is the latest:\n{why}")
    return paths


def using(
    path: str, look_up: Callable[[], str | None] | None, use: Callable[[str], T]
) -> tuple[str, T]:
    """Uses a checkpoint; if it is removed meanwhile, the one that is the latest then.

    A trainer removes old checkpoints while others look at them.

    Args:
        look_up: Gives the latest one; None: the program has asked for exactly this one.
        use: `use(path)` reads or restores it.

    Returns:
        (the path that was used, what `use` returned)
    """
    while True:
        try:
            return path, use(path)
        except (tf.errors.OpError, ValueError):
            latest = look_up() if look_up and not checkpoints.is_there(path) else None
            if latest is None or latest == path:
                raise
            tf1.logging.info("%s was removed before it was read. Now %s is used.", path, latest)
            path = latest


def is_complete(path: str) -> bool:
    """True if all values of a checkpoint can be read."""
    return _defect(path) is None


def listed_names(folder: str) -> set[str]:
    """The names of the checkpoints that the `checkpoint` file of `folder` lists."""
    state = _state(folder)
    return set(map(os.path.basename, state.all_model_checkpoint_paths)) if state else set()


def _up_to_latest(folder: str) -> tuple[list[str], dict[str, str]]:
    """(the listed checkpoints up to the latest complete one, the defects of those after it)."""
    paths, defects = _listed(folder), {}
    while paths and (defect := _defect(paths[-1])):
        defects[paths.pop()] = defect
    return paths, defects


def _usable(folder: str) -> str:
    """A sentence that names the newest complete checkpoints of a folder; empty if there are none.

    To be said where none of those is listed.
    """
    complete = itertools.islice(filter(is_complete, reversed(_found(folder))), _MOST_NAMED)
    if not (paths := list(complete)):
        return ""
    return (
        f"Not listed, but complete: {', '.join(map(os.path.basename, paths))}. To use one, call "
        f"tf.compat.v1.train.update_checkpoint_state({folder!r}, {paths[0]!r}) once."
    )


def _listed(folder: str) -> list[str]:
    """The checkpoints that the `checkpoint` file names, the latest last.

    If that file is empty or damaged, as a power failure can leave it: those in the folder.
    """
    rewritten_checkpoint.put_back_all(folder)
    state = _state(folder)
    if state is None:
        if not tf.io.gfile.exists(f"{folder}/checkpoint"):
            return []
        state = _state(folder)  # another process may have just written it
    if state is None:
        listed = _found(folder)
        if not listed:
            raise CheckpointError(
                f"The file {folder}/checkpoint, which lists the checkpoints, cannot be read, and "
                "none is beside it. Put back a copy of one, or remove the file to start anew."
            )
        _say_once(
            f"The file {folder}/checkpoint, which lists the checkpoints, cannot be read. Those "
            f"beside it are used: {', '.join(map(os.path.basename, listed))}."
        )
        return listed
    newest = state.model_checkpoint_path
    return [*(path for path in state.all_model_checkpoint_paths if path != newest), newest]


def _state(folder: str) -> Any:
    """The contents of the `checkpoint` file; None if there is none, or if they make no sense."""
    try:
        return tf.train.get_checkpoint_state(folder)
    except ValueError:  # it is empty, or no text
        return None


def _found(folder: str) -> list[str]:
    """The checkpoints in a folder, by their step."""
    indices = tf.io.gfile.glob(f"{folder}/*.index")
    by_step = {int(found[2]): found[1] for path in indices if (found := _OF_STEP.fullmatch(path))}
    return [by_step[step] for step in sorted(by_step)]


@functools.lru_cache(maxsize=1)
def _say_once(message: str) -> None:
    tf1.logging.warn(message)


def _files(path: str) -> list[str]:
    if "://" in path:
        return sorted(tf.io.gfile.glob([f"{path}.index", f"{path}.data-*", path]))
    # Python's takes a twentieth of the time of TensorFlow's, which a short call would feel.
    start, shards = _V1_SHARDS.fullmatch(path).groups("")  # type: ignore[union-attr]
    local = glob.escape(start) + shards
    return sorted(itertools.chain(*map(glob.iglob, (f"{local}.index", f"{local}.data-*", local))))


def _defect(path: str) -> str | None:
    """The defect of a checkpoint; None if it can be used."""
    try:
        files = _sizes_and_times(path)
    except _GONE:
        return "its files were removed just now"
    if (path, files) in _written:
        return None
    # Remote folders are not read twice: what is wrong there shows when it is restored.
    return _defect_of(path, "://" not in path, files)


def note_written(path: str) -> None:
    """A checkpoint that this process has written to its end need not be read to be trusted."""
    if "://" in path:
        return  # it would not be read, and to look at its files is a call for each
    with contextlib.suppress(*_GONE):
        _written.append((path, _sizes_and_times(path)))


def _sizes_and_times(path: str) -> _Files:
    return tuple(map(_size_and_time, _files(path)))


def _size_and_time(file: str) -> tuple[int, int]:
    if "://" in file:
        remote = tf.io.gfile.stat(file)
        return remote.length, remote.mtime_nsec
    local = os.stat(file)  # TensorFlow's has whole seconds
    return local.st_size, local.st_mtime_ns


@functools.lru_cache(maxsize=64)
def _defect_of(path: str, read: bool, files: _Files) -> str | None:
    """Returns the defect of a checkpoint, cached until its `files` (sizes, times) change."""
    if not files:
        return "its files are missing"
    try:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map() if read else ():
            reader.get_tensor(name)  # checks what is read against its checksum
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        return str(error)
    return None
