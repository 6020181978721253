"""A `tf.train.CheckpointManager` of legacy checkpoints, for loops that want one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class NamedCheckpoints(tf.train.CheckpointManager):
    """Reads and writes `model.ckpt-<global step>`, in the format and by the names of TF1.

    Args:
        model: The AdaptedModel.
        directory: The folder of the checkpoints.
        checkpoint_interval: The number of steps between two; None: each `save` writes one.
    """

    def __init__(self, model: Any, directory: str, checkpoint_interval: int | None):
        super().__init__(
            _NamedCheckpoint(model),
            directory,
            max_to_keep=None,  # the program's Saver removes the old ones
            step_counter=model.global_step,
            checkpoint_interval=checkpoint_interval,
            checkpoint_name="model.ckpt",
        )
        self._model = model

    @property
    def latest_checkpoint(self) -> str | None:
        """As of the base class."""
        latest: str | None = tf.train.latest_checkpoint(self.directory)
        return latest

    @property
    def checkpoints(self) -> list[str]:
        """As of the base class."""
        state = tf.train.get_checkpoint_state(self.directory)
        return list(state.all_model_checkpoint_paths) if state else []

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint; returns its path, or None if there is none."""
        return self._model.load_checkpoint(self.directory) if self.latest_checkpoint else None

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None
    ) -> str | None:
        """Writes a checkpoint of the global step; None if the interval has not passed.

        Args:
            checkpoint_number: The number of a legacy checkpoint is its global step, always.
            check_interval: False: write one in any case.
            options: Have no meaning for these checkpoints.
        """
        del checkpoint_number, options
        step, every = int(self._model.global_step.numpy()), self.checkpoint_interval
        latest = self.latest_checkpoint
        last = int(latest.rpartition("-")[2]) if latest else None
        if last == step or (check_interval and every and last is not None and step - last < every):
            return None
        saved: str = self._model.save_checkpoint(self.directory)
        return saved

    def sync(self) -> None:
        """Nothing: a checkpoint is complete when `save` returns."""


class _NamedCheckpoint(tf.train.Checkpoint):
    """The `checkpoint` of the manager."""

    def __init__(self, model: Any):
        super().__init__()
        self._model_of = _Holder(model)

    def restore(self, save_path: Any, options: Any = None) -> None:
        """Restores a legacy checkpoint by its names."""
        del options
        self._model_of.model.load_checkpoint(save_path)


class _Holder:
    """Keeps the model from being a part of a checkpoint of objects."""

    def __init__(self, model: Any):
        self.model = model
