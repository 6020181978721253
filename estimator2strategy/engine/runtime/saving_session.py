"""The session of a training or evaluation: a ReplaySession that checkpoints come from and go to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.record.queue_session import QueueSession
from estimator2strategy.engine.replay.engines import Request
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.runtime import checkpoints
from estimator2strategy.engine.worlds import modern_world


class SavingSession(ReplaySession):
    """Knows which checkpoint it was restored from, and says so when one could not be written.

    Args:
        graph, runs: See ReplaySession.
        around: `around()` is the context in which each request runs: TensorFlow rewrites programs
            when they first do.
        first_key: The number of the first collective, where several processes train in step.
        queues: The queues that the input reads from; they end with the session.

    Attributes:
        restored_from: Path of the checkpoint that the variables are from; None: from none.
        first_key: As above.
        error: The last one with which a run ended.
    """

    def __init__(
        self,
        graph: tf.Graph,
        runs: Runs,
        around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
        first_key: int = 0,
        queues: QueueSession | None = None,
    ):
        super().__init__(graph, runs)
        self.restored_from: str | None = None
        self.first_key = first_key
        self.error: tf.errors.OpError | None = None
        self._around = around
        self._queues = queues
        self._written: set[str] | None = None  # since `restored_from`; None: all may have been
        self._noted: set[Request] = set()  # the requests whose variables are among them

    def last_loss(self) -> np.ndarray | None:
        """The loss of the last step that ran and kept it; see `Gauges`."""
        with modern_world():
            return self.state.gauges.last_loss()

    def note_restored(self, path: str) -> None:
        """Notes the checkpoint that a Saver has just restored."""
        self.restored_from = path
        self._written = set()
        self._noted.clear()

    def is_as_restored(self, path: str, variables: Collection[str]) -> bool:
        """True if nothing can have changed these (their VarHandleOps) since `path` was restored."""
        if self.restored_from != path or self._written is None:
            return False
        return self._written.isdisjoint(variables)

    def _note_writes(self, request: Request) -> None:
        if self._written is None or request in self._noted:
            return
        self._noted.add(request)
        if self._expected is not None and self._expected.step.op in request.ops:
            self._written = None
        else:
            names = [*request.tensors, *request.ops]
            if self.recorded.have_effects(self.recorded.ancestors(map(input_node, names))):
                self._written.update(self.recorded.variables_written(names))

    def evaluate(
        self,
        tensors: Sequence[tf.Tensor],
        ops: Sequence[tf.Operation] = (),
        feeds: Sequence[tuple[tf.Tensor, object]] = (),
    ) -> list[tf.Tensor]:
        """As of ReplaySession; what failed in a queue is raised as it was."""
        try:
            return super().evaluate(tensors, ops, feeds)
        except tf.errors.OpError as error:
            if self._queues and self._queues.failure:
                raise self._queues.failure from error
            raise

    def close(self) -> None:
        """Ends the session, and the queues first: the input may wait for one."""
        if self._queues:
            self._queues.close()
        super().close()

    def _evaluate(self, request: Request, feeds: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        self._note_writes(request)
        try:
            with self._around():
                return super()._evaluate(request, feeds)
        except tf.errors.OpError as error:
            self.error = error
            behind = self.recorded.ancestors(map(input_node, request.names))
            if any(self.recorded[name].op == "SaveV2" for name in behind):
                raise checkpoints.not_written(error) from error
            raise
