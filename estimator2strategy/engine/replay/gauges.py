"""Variables in which steps leave values that the host reads after a block, or a part of one.

The results of a block are lost where the input ends in the middle of it: the loss is kept here.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private


class Gauges:
    """The gauges of one State, each made at its first use, in the `modern_world`."""

    def __init__(self) -> None:
        self._loss: tf.Variable | None = None
        self._waited: tf.Variable | None = None

    def prepare_loss(self, spec: tf.TensorSpec) -> None:
        """Makes room for such losses; called before a function that keeps one is traced."""
        if self._loss is None:
            self._loss = _tf_private.UninitializedVariable(shape=spec.shape, dtype=spec.dtype)

    def keep_loss(self, loss: tf.Tensor) -> None:
        """Keeps the loss of a step, also in a function that is being traced."""
        assert self._loss is not None
        self._loss.assign(loss, read_value=False)

    def last_loss(self) -> np.ndarray | None:
        """The loss of the last step that ran and kept it; None if none did."""
        if self._loss is None or not tf.raw_ops.VarIsInitializedOp(resource=self._loss.handle):
            return None
        value: np.ndarray = self._loss.numpy()
        return value

    def add_wait(self, seconds: tf.Tensor) -> None:
        """Counts the seconds (float64) that a step waited for its batch, where that is traced."""
        if self._waited is None:
            with tf.init_scope(), tf.device("/CPU:0"):
                self._waited = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._waited.assign_add(seconds, read_value=False)

    def waited(self) -> float | None:
        """All of those seconds; None if no step measures them."""
        return None if self._waited is None else float(self._waited.read_value())

    def reset(self) -> dict[int, tf.Tensor]:
        """Begins anew.

        Returns:
            The new handles, by the id of the old one: a variable cannot lose its value.
        """
        if self._waited is not None:
            self._waited.assign(0.0)
        if self._loss is None:
            return {}
        old, self._loss = self._loss, None
        self.prepare_loss(tf.TensorSpec(old.shape, old.dtype))
        assert self._loss is not None
        return {id(old.handle): self._loss.handle}
