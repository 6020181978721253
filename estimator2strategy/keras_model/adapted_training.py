"""The training of an AdaptedModel: a session that stays open, and steps in one call."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.engines import Request, Step
from estimator2strategy.engine.replay.failed_op import naming_failures
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.errors import UnsupportedError

tf1 = tf.compat.v1

_ENDED = (
    "The batches of input_fn have ended, at global step %d. Stop training here, or let the dataset "
    "repeat()."
)


class NamingFailures:
    """A `tf.function` whose failures, in a call from Python, are told as the program knows them.

    All else that it is asked for is the function's own: `get_concrete_function`, say.

    Args:
        function: The `tf.function`.
        naming: Makes the context of a call; see `naming_failures`.
    """

    def __init__(
        self, function: Any, naming: Callable[[], contextlib.AbstractContextManager[None]]
    ):
        self._function = function
        self._naming = naming

    @tf.autograph.experimental.do_not_convert
    def __call__(self) -> Any:
        with self._naming():
            return self._function()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


class AdaptedTraining:
    """Runs steps of a recorded training, as many in a call as are asked for.

    Must be made with `recording.graph` as the default graph.

    Args:
        recording: The training.
        creator: Makes its session.
        inside: The context in which the session runs.

    Attributes:
        session: The session.
    """

    def __init__(
        self,
        recording: Recording,
        creator: ReplaySessionCreator,
        inside: Callable[[], contextlib.AbstractContextManager[None]],
    ):
        spec = recording.spec
        self._inside = inside
        self._counter = tf1.train.get_global_step().handle.op.name
        train_op = getattr(spec.train_op, "op", spec.train_op)
        self._fetches = [train_op, spec.loss]
        stops = recording.iterations is None and not is_tpu(recording.strategy)
        self._step = Step(train_op.name, loss=spec.loss.name, stops_at_nan=stops, keeps_loss=True)
        hooks = [
            *recording.input_hooks,
            *spec.training_hooks,
            *spec.training_chief_hooks,
            tf1.train.NanTensorHook(spec.loss),
        ]
        self._monitored = tf1.train.MonitoredSession(creator, hooks=hooks)
        assert creator.session  # a MonitoredSession makes it first of all
        self.session = creator.session

    def run(self, steps: int) -> tuple[int, np.ndarray]:
        """Runs up to `steps` steps in one call.

        Returns:
            The number of steps that ran, and the loss of the last one.

        Raises:
            OutOfRangeError: The input has ended, and no step ran.
            NanLossDuringTrainingError: The last loss, or on one device any, is NaN; there no step
                after it ran.
            RuntimeError: A hook of model_fn has asked to stop.
        """
        with self._inside():
            before = self._global_step()
            if self._monitored.should_stop():
                raise RuntimeError(f"A hook of model_fn asked to stop, at global step {before}.")
            self.session.expect(self._step, steps)
            try:
                loss = self._ran_loss()
            except tf.errors.OutOfRangeError:
                # The steps before the end have run, but their results are lost with the call.
                ran, kept = self._global_step() - before, self.session.last_loss()
                if ran and kept is not None:
                    return min(ran, steps), kept
                raise tf.errors.OutOfRangeError(None, None, _ENDED % before) from None
            assert self.session.ran
            return self.session.ran.steps, loss

    def _ran_loss(self) -> np.ndarray:
        try:
            loss: np.ndarray = self._monitored.run(self._fetches)[1]
            return loss
        finally:
            with modern_world():
                self.session.runs.give_back()  # evaluation and the user's loop read variables

    def _global_step(self) -> int:
        """The global step; loading a checkpoint and `block` change it behind the session."""
        with modern_world():
            return int(self.session.replay.read(self._counter))

    @functools.cached_property
    def block(self) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
        """A function of a number of steps, to be called in any `tf.function` too.

        Returns the number of steps that ran, fewer at a NaN loss or at the end of the input, and
        the loss of the last. It calls no hooks.

        Raises:
            UnsupportedError: JAX runs the steps.
        """
        if self.session.replay.device is not None:
            raise UnsupportedError(
                "train_step is a tf.function, and the steps run under JAX: call train(), or leave "
                "out runtime=Runtime.JAX and E2S_RUNTIME."
            )
        op, loss = self._fetches
        request = Request((loss.name,), (op.name,))
        with self._inside(), modern_world():
            (function, *_) = self.session.runs.functions(self._step, request)

        def block(steps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            count, _, last_loss = function(steps)
            return count, last_loss

        return block

    def naming_failures(self) -> contextlib.AbstractContextManager[None]:
        """Around a call of a `block`: a step that fails names the program's op and its line."""
        return naming_failures(self.session.recorded, self.session.graph)

    def close(self) -> None:
        """Calls the hooks' `end`, and frees the input."""
        with self._inside():
            self._monitored.close()
