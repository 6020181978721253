"""Saves the place in the input beside each checkpoint, so that training goes on there.

    model.ckpt-200.index ...         as ever: the original program, too, can go on from it
    input_position-200.3f09c1d2...   belongs to exactly that checkpoint, and goes with it

The second file is written first, as `input_position-200.pending`, and is given the digest of the
checkpoint's index for its name when that is complete. So a process that is killed at any moment
leaves no position that could pass for another checkpoint's. It also holds the places of the random
ops in their streams. When a training ends by itself its positions are removed, and the next call of
`train` starts its input anew, as it always did.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.replay import iterators
from estimator2strategy.engine.replay.iterators import lines_of_random_inputs
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.worlds import modern_world

tf1 = tf.compat.v1

_PENDING = "pending"
_RANDOM_BEGINS_ANEW = (
    "The input goes on, but random ops in a function of its Dataset begin their numbers anew: the "
    "examples are others than without the interruption.\n  At %s\n"
    "  Draw them in model_fn, or use tf.random.stateless_uniform and the like in the Dataset, with "
    "seeds of tf.data.Dataset.random, whose place is kept."
)

# The words of TensorFlow about the op in which it failed, which is not the program's.
_AROUND_THE_REASON = re.compile(r"^\{\{.*?\}\} | \[Op:.*$", re.DOTALL)


class InputPosition(tf1.train.SessionRunHook):
    """Saves the position with each checkpoint, and goes on from the one of the restored checkpoint.

    Must come after all hooks that start an input.

    Args:
        folder: The model_dir.
        most_bytes: A larger state (a shuffle buffer of images, say) is not saved: it costs more
            than it is worth.
        host: The number of this host, if another one writes the checkpoints.

    Attributes:
        saved: The step of the last checkpoint that is complete.
    """

    def __init__(self, folder: str, most_bytes: int = 2**30, host: int = 0):
        self._files = PositionFiles(folder, f".host{host}" if host else "")
        self.saved: int | None = None
        self._most_bytes = most_bytes
        self._replay: Replay | None = None
        self._running: Replay | None = None  # that of the session in which a step was run
        self._origins: dict[str, str] | None = None
        self._can_be_saved = True
        self._unsealed: str | None = None

    def attach(self, hooks: Sequence[tf1.train.SessionRunHook]) -> None:
        """Adds a listener to the hooks that write checkpoints to the folder."""
        for hook in hooks:
            path = getattr(hook, "_save_path", "")  # of a CheckpointSaverHook
            if isinstance(hook, tf1.train.CheckpointSaverHook) and path == self._files.checkpoints:
                earlier = [x for x in hook._listeners if not isinstance(x, PositionListener)]
                hook._listeners[:] = [PositionListener(self), *earlier]

    def after_create_session(self, session: SavingSession, coord: Any) -> None:
        del coord
        self._replay, self._origins = session.replay, None
        path = session.restored_from and self._files.position_of(session.restored_from)
        self._files.remove_pending_but(path)
        if path:
            self._go_on_from(path)
        elif session.restored_from and self._files.are_of_others(session.restored_from):
            tf1.logging.warn(
                "The input of this host starts anew: it had ended before it could save its place "
                "beside %s. The chief's input goes on.",
                session.restored_from,
            )

    def before_run(self, run_context: Any) -> None:
        del run_context
        self._running = self._replay

    def before_save(self, session: SavingSession, step: int) -> None:
        checkpoint = f"{self._files.checkpoints}-{step}"
        # A saver's `after_create_session` comes before ours, also where a session was lost.
        if session.replay is self._running:
            self._unsealed = self._written(checkpoint)
        else:  # that checkpoint was just restored, and is written again
            self._unsealed = self._files.position_of(checkpoint)

    def after_save(self, step: int) -> None:
        self.saved = step
        self._files.seal(self._unsealed, f"{self._files.checkpoints}-{step}")

    def save_beside(self, step: int) -> None:
        """Saves the position for a checkpoint that another host has just written."""
        checkpoint = f"{self._files.checkpoints}-{step}"
        if path := self._written(checkpoint):
            self._files.take_name(path, checkpoint)

    def not_saved(self) -> None:
        """Removes the position of a checkpoint that could not be written, to free its disk."""
        self._files.remove_pending_but(None)

    def remove(self) -> None:
        """Removes all saved positions."""
        self._files.remove_all()

    def _go_on_from(self, path: str) -> None:
        try:
            with modern_world():
                assert self._replay
                _restore(self._replay, *_read(path))
        except (tf.errors.OpError, ValueError) as error:
            tf1.logging.warn("The input starts anew, because %s does not fit: %s", path, error)
        else:
            tf1.logging.info("The input goes on from %s.", path)
            if lines := lines_of_random_inputs(self._replay):
                tf1.logging.warn(_RANDOM_BEGINS_ANEW, "\n  At ".join(lines))

    def _written(self, checkpoint: str) -> str | None:
        if not self._can_be_saved:
            return None
        try:
            with modern_world():
                assert self._replay
                self._origins = self._origins or iterators.origins(self._replay)
                records = _records(self._replay, self._origins, self._most_bytes)
                return self._files.write(checkpoint, records)
        except (tf.errors.OpError, _TooLargeError) as error:
            self._can_be_saved = False
            self._files.remove_pending_but(None)
            tf1.logging.warn(
                "The position of the input cannot be saved with the checkpoints, so after an "
                "interruption the input starts anew: %s",
                _AROUND_THE_REASON.sub("", str(error)),
            )
            return None


class PositionListener(tf1.train.CheckpointSaverListener):
    """Tells an InputPosition of each checkpoint; `after_save` may be called in another thread."""

    def __init__(self, position: InputPosition):
        self._position = position

    def before_save(self, session: tf1.Session, global_step_value: int) -> None:
        self._position.before_save(session, int(global_step_value))

    def after_save(self, session: tf1.Session, global_step_value: int) -> None:
        self._position.after_save(int(global_step_value))

    def not_saved(self, step: int) -> None:
        """Called when a checkpoint could not be written."""
        self._position.not_saved()


class _TooLargeError(Exception):
    pass


def _records(replay: Replay, origins: Mapping[str, str], most_bytes: int) -> Iterator[bytes]:
    """A header, and then the parts of each iterator's state.

    Raises:
        _TooLargeError: They are larger than `most_bytes`.
    """
    states = {name: list(iterators.saved(replay, name)) for name in origins}
    size = sum(len(part) for state in states.values() for part in state)
    if size > most_bytes:
        raise _TooLargeError(f"it takes {size / 2**30:.1f} GB, mostly for what is being shuffled.")
    header = {
        "iterators": {name: [origins[name], len(state)] for name, state in states.items()},
        "random": replay.state.random_places(),
    }
    yield json.dumps(header).encode()
    for state in states.values():
        yield from state


def _restore(replay: Replay, header: dict[str, Any], parts: list[bytes]) -> None:
    """Puts the replay's iterators and random ops where those of `header` were.

    Raises:
        ValueError, tf.errors.OpError: The program's input is another one now.
    """
    if iterators.origins(replay) != {
        name: origin for name, (origin, _) in header["iterators"].items()
    }:
        raise ValueError("the program makes its input otherwise now.")
    for name, (_, count) in header["iterators"].items():
        iterators.restore(replay, name, parts[:count])
        parts = parts[count:]
    replay.state.move_random(header["random"])


def _read(path: str) -> tuple[dict[str, Any], list[bytes]]:
    header, *parts = tf.data.TFRecordDataset(path).as_numpy_iterator()
    return json.loads(header), parts


class PositionFiles:
    """The files of the positions in a folder.

    Args:
        folder: The model_dir.
        ending: Of the names of the files of a host that does not write the checkpoints. Who does
            removes them, too.

    Attributes:
        checkpoints: Path of the folder's checkpoints, up to the step.
    """

    def __init__(self, folder: str, ending: str = ""):
        self._folder, self._ending = folder, ending
        self.checkpoints = os.path.join(folder, "model.ckpt")

    def position_of(self, checkpoint: str) -> str | None:
        """The position that belongs to a checkpoint, if there is one."""
        # Pending is one whose training was killed just after its checkpoint was complete.
        for path in (self._sealed(checkpoint), self._named(checkpoint, _PENDING)):
            if path and tf.io.gfile.exists(path):
                return path
        return None

    def write(self, checkpoint: str, records: Iterable[bytes]) -> str | None:
        """Writes the position for a checkpoint that is about to be written."""
        path = self._named(checkpoint, _PENDING)
        if path is None:
            return None
        unfinished = f"{path}.unfinished"
        with tf.io.TFRecordWriter(unfinished) as writer:
            for record in records:
                writer.write(record)
        tf.io.gfile.rename(unfinished, path, overwrite=True)
        return path

    def are_of_others(self, checkpoint: str) -> bool:
        """True if the chief has saved its position with a checkpoint, and this is another host."""
        return (
            bool(self._ending) and PositionFiles(self._folder).position_of(checkpoint) is not None
        )

    def take_name(self, path: str, checkpoint: str) -> None:
        """Binds `path` to a checkpoint that is complete."""
        if sealed := self._sealed(checkpoint):
            tf.io.gfile.rename(path, sealed, overwrite=True)

    def seal(self, path: str | None, checkpoint: str) -> None:
        """Binds `path` to a checkpoint that is complete; removes positions of none."""
        sealed = self._sealed(checkpoint)
        if path and path != sealed:
            self.take_name(path, checkpoint)
        for other, owner in self._all():
            of_other_host = ".host" in os.path.basename(other)
            is_left_over = owner == checkpoint and other != sealed and not of_other_host
            if is_left_over or not tf.io.gfile.exists(f"{owner}.index"):
                tf.io.gfile.remove(other)

    def remove_pending_but(self, path: str | None) -> None:
        """Removes the files of trainings that were killed while they wrote a checkpoint."""
        for other, _ in self._all():
            mine = other.endswith((f".{_PENDING}{self._ending}", f"{self._ending}.unfinished"))
            if f".{_PENDING}" in other and mine and other != path:
                tf.io.gfile.remove(other)

    def remove_all(self) -> None:
        for path, _ in self._all():
            tf.io.gfile.remove(path)

    def _all(self) -> Iterator[tuple[str, str]]:
        """Each position, and the checkpoint that it is named after."""
        for name in tf.io.gfile.listdir(self._folder):
            if match := re.fullmatch(r"input_position-(\d+)\..+", name):
                yield os.path.join(self._folder, name), f"{self.checkpoints}-{match[1]}"

    def _sealed(self, checkpoint: str) -> str | None:
        index = f"{checkpoint}.index"
        if not tf.io.gfile.exists(index):
            return None
        with tf.io.gfile.GFile(index, "rb") as file:
            return self._named(checkpoint, hashlib.sha256(file.read()).hexdigest()[:16])

    def _named(self, checkpoint: str, suffix: str) -> str | None:
        start, dash, step = checkpoint.rpartition("-")
        if start != self.checkpoints or not dash:
            return None  # some other file that a program restored
        return os.path.join(self._folder, f"input_position-{step}.{suffix}{self._ending}")
