"""Chooses the checkpoint to go on from: the latest complete one in a folder.

If a process was killed, or a disk was full, while a checkpoint was written, that checkpoint is
passed over with a line in the log. Its files stay. If the list of checkpoints cannot be read, those
in the folder are taken.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any

import tensorflow as tf

from estimator2strategy.errors import CheckpointError

tf1 = tf.compat.v1

_OF_STEP = re.compile(r"(.*-(\d+))\.index", re.DOTALL)


def latest_checkpoint(folder: str) -> str | None:
    """Path of the latest complete checkpoint that the `checkpoint` file of `folder` lists.

    Returns:
        None if nothing is listed, or if no file is there of all that is listed.

    Raises:
        CheckpointError: There are files, but none that can be used.
    """
    if not any(map(_files, _listed(folder))):
        return None
    return checkpoints_up_to_latest(folder)[-1]


def checkpoints_up_to_latest(folder: str) -> list[str]:
    """The listed checkpoints up to the latest complete one, which is the last of them.

    Those before it are not looked into.

    Raises:
        CheckpointError: Checkpoints are listed, but none that can be used.
    """
    paths = _listed(folder)
    defects: dict[str, str] = {}
    while paths and (defect := _defect(paths[-1])):
        defects[paths.pop()] = defect
    why = "\n".join(f"  {path}: {defect}" for path, defect in defects.items())
    if defects and not paths:
        raise CheckpointError(
            f"None of those that {folder}/checkpoint lists is a valid checkpoint:\n{why}\n"
            "  Put back a copy of one of them, or remove the file 'checkpoint' to start anew."
        )
    if defects:
        _say_once(f"Passing over what cannot be used, {paths[-1]} is the latest:\n{why}")
    return paths


def is_complete(path: str) -> bool:
    """True if all values of a checkpoint can be read."""
    return _defect(path) is None


def listed_names(folder: str) -> set[str]:
    """The names of the checkpoints that the `checkpoint` file of `folder` lists."""
    state = _state(folder)
    return set(map(os.path.basename, state.all_model_checkpoint_paths)) if state else set()


def _listed(folder: str) -> list[str]:
    """The checkpoints that the `checkpoint` file names, the latest last.

    If that file is empty or damaged, as a power failure can leave it: those in the folder.
    """
    state = _state(folder)
    if state is None:
        if not tf.io.gfile.exists(f"{folder}/checkpoint"):
            return []
        state = _state(folder)  # another process may have just written it
    if state is None:
        found = _found(folder)
        if not found:
            raise CheckpointError(
                f"The file {folder}/checkpoint, which lists the checkpoints, cannot be read, and "
                "none is beside it. Put back a copy of one, or remove the file to start anew."
            )
        _say_once(
            f"The file {folder}/checkpoint, which lists the checkpoints, cannot be read. Those "
            f"beside it are used: {', '.join(map(os.path.basename, found))}."
        )
        return found
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
    return sorted(tf.io.gfile.glob([f"{path}.index", f"{path}.data-*", path]))


def _defect(path: str) -> str | None:
    """The defect of a checkpoint; None if it can be used."""
    stats = [tf.io.gfile.stat(file) for file in _files(path)]
    # Remote folders are not read twice: what is wrong there shows when it is restored.
    return _defect_of(path, "://" not in path, tuple((s.length, s.mtime_nsec) for s in stats))


@functools.lru_cache(maxsize=64)
def _defect_of(path: str, read: bool, files: tuple[tuple[int, int], ...]) -> str | None:
    """As `_defect`; `files` (sizes, times) is there to notice a change."""
    if not files:
        return "its files are missing"
    try:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map() if read else ():
            reader.get_tensor(name)  # checks what is read against its checksum
    except (tf.errors.OpError, IndexError, RuntimeError, ValueError) as error:
        return str(error)
    return None
