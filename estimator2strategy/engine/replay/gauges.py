"""Variables in which steps leave values that the host reads after a block, or a part of one.

The results of a block are lost where the input ends in the middle of it: the loss is kept here. A
TPU does not wait for anybody to look at the loss of each step: each core notes since when its own
is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.replay import tpu_variables

# The name, in a TPU's program, of the gauge that each core has.
NAN_GAUGE = "nan_since_on_the_core"


class Gauges:
    """The gauges of one State, each made at its first use, in the `modern_world`."""

    def __init__(self) -> None:
        self._loss: tf.Variable | None = None
        self._held: tf.Tensor | None = None
        self._waited: tf.Variable | None = None
        # On each core of a TPU: [steps so far, the one since which its loss is NaN or 0].
        self._nan: Any = None

    def prepare_loss(self, spec: tf.TensorSpec) -> None:
        """Makes room for such losses; called before a function that keeps one is traced."""
        if self._loss is None:
            self._loss = _tf_private.UninitializedVariable(shape=spec.shape, dtype=spec.dtype)

    def hold_loss(self, loss: tf.Tensor) -> None:
        """Keeps the loss of a step that is done."""
        self._held = loss

    def keep_loss(self, loss: tf.Tensor) -> None:
        """Keeps the loss of a step in a function that is being traced."""
        assert self._loss is not None
        self._loss.assign(loss, read_value=False)

    def store_held(self) -> None:
        """Hands on to functions that keep losses the one that was held, if there is one."""
        if self._held is not None and self._loss is not None:
            self._loss.assign(self._held, read_value=False)
            self._held = None

    def last_loss(self) -> np.ndarray | None:
        """The loss of the last step that ran and kept it; None if none did."""
        if self._held is not None:
            held: np.ndarray = self._held.numpy()
            return held
        if self._loss is None or not tf.raw_ops.VarIsInitializedOp(resource=self._loss.handle):
            return None
        value: np.ndarray = self._loss.numpy()
        return value

    def prepare_nan(self, strategy: tf.distribute.Strategy) -> None:
        """Makes a gauge on each core of a TPU; called before a program that notes NaN is traced."""
        if self._nan is not None:
            return
        shape = tf.TensorShape([2])
        with tf.init_scope():
            self._nan = tpu_variables.uninitialized_variable(strategy, NAN_GAUGE, shape, tf.int64)
            for copy in strategy.experimental_local_results(self._nan):
                copy.assign(tf.zeros(shape, tf.int64))

    def note_nan(self, loss: tf.Tensor) -> None:
        """Counts a step, and keeps its number if NaN begins with it; forgets it if NaN ends.

        Must be called in the program of a core that is being traced.
        """
        handle = self._nan.handle
        with tf.name_scope(NAN_GAUGE):
            steps, since = tf.unstack(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64))
            steps += 1
            value = tf.stack([steps, nan_since(is_nan(loss), since, steps)])
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)

    def steps_since_nan(self) -> int | None:
        """The number of steps since a core's loss became NaN; None: that of no core is."""
        if self._nan is None:
            return None
        copies = self._nan.distribute_strategy.experimental_local_results(self._nan)
        counts = [copy.numpy() for copy in copies]
        return max((int(steps - since) for steps, since in counts if since), default=None)

    def add_wait(self, seconds: tf.Tensor) -> None:
        """Counts the seconds (float64) that a step waited for its batch, where that is traced."""
        if self._waited is None:
            with tf.init_scope(), tf.device("/CPU:0"):
                self._waited = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._waited.assign_add(seconds, read_value=False)

    def waited(self) -> float | None:
        """Returns the seconds that steps waited for batches; None if no step measures them."""
        return None if self._waited is None else float(self._waited.read_value())

    def reset(self) -> dict[int, tf.Tensor]:
        """Sets all gauges back to their initial state.

        Returns:
            The new handles, by the id of the old one: a variable cannot lose its value.
        """
        if self._waited is not None:
            self._waited.assign(0.0)
        self._held = None
        if self._loss is None:
            return {}
        old, self._loss = self._loss, None
        self.prepare_loss(tf.TensorSpec(old.shape, old.dtype))
        assert self._loss is not None
        return {id(old.handle): self._loss.handle}


def is_nan(loss: tf.Tensor) -> tf.Tensor:
    """Returns a bool scalar: the loss, or one of several, is NaN."""
    nan = tf.math.is_nan(loss)
    return nan if loss.shape.rank == 0 else tf.reduce_any(nan)


def nan_since(nan: tf.Tensor, since: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
    """The step since which the loss is NaN, 0 if it is not.

    Args:
        nan: True if the loss of `step` is NaN.
        since: The answer after the step before it.
        step: The number of this one, counted from 1.
    """
    return tf.where(nan, tf.where(tf.equal(since, 0), step, since), tf.zeros_like(since))
