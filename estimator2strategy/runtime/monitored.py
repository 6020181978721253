"""TensorFlow's own MonitoredSession, on a session that replays.

Hooks, scaffolds, savers and recovery are then not imitated: they are TensorFlow's.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.plan.graph import RecordedGraph
from estimator2strategy.record.recording import Recording
from estimator2strategy.replay.session import ReplaySession
from estimator2strategy.replay.state import State
from estimator2strategy.runtime import checkpoints, devices, peers, workers
from estimator2strategy.runtime.latest_checkpoint import checkpoints_up_to_latest
from estimator2strategy.runtime.session_config import not_rewritten

tf1 = tf.compat.v1


class ReplaySessionCreator(tf1.train.SessionCreator):
    """Makes the session of a recording: restored from a checkpoint, or initialised.

    Args:
        recording: Whose graph to replay.
        checkpoint_dir: Restore the latest checkpoint in it, if there is one.
        checkpoint_path: Restore this one.
        session: A reusable session of this recording that was closed; None: a new one is made.
        init_fn: What to do after initialisation, if the scaffold has no init_fn.

    Attributes:
        session: The session, once there is one.
    """

    def __init__(
        self,
        recording: Recording,
        checkpoint_dir: str | None = None,
        checkpoint_path: str | None = None,
        session: ReplaySession | None = None,
        init_fn: Callable[[Any], None] | None = None,
    ):
        self._recording = recording
        self._scaffold = recording.spec.scaffold or tf1.train.Scaffold()
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_path = checkpoint_path
        self.session = session
        self._init_fn = init_fn

    def create_session(self) -> ReplaySession:
        scaffold = self._scaffold
        scaffold.finalize()
        session = self.session or self._new_session()
        manager = _SessionManager(
            session,
            local_init_op=scaffold.local_init_op,
            ready_op=scaffold.ready_op,
            ready_for_local_init_op=scaffold.ready_for_local_init_op,
            graph=session.graph,
            local_init_feed_dict=scaffold.local_init_feed_dict,
        )
        try:
            with not_rewritten():  # what starts a session runs once
                manager.prepare_session(
                    "",
                    saver=scaffold.saver,
                    checkpoint_dir=self._checkpoint_dir,
                    checkpoint_filename_with_path=self._checkpoint_path,
                    init_op=scaffold.init_op,
                    init_feed_dict=scaffold.init_feed_dict,
                    init_fn=scaffold.init_fn or self._init_fn,
                )
        except BaseException:
            session.close()  # MonitoredSession closes only what it was given
            raise
        self.session = session
        return session

    def _new_session(self) -> ReplaySession:
        strategy, on_cores = self._recording.strategy, self._recording.on_cores
        hosts = {host.device for host in devices.hosts(strategy)} - {""}
        recorded = RecordedGraph(self._recording.graph, hosts)
        session = _SavingSession(recorded, State(recorded, strategy, on_cores))
        session.splices.extend(self._recording.splices)
        if self._recording.worker:
            worker, first = self._recording.worker, workers.first_key()
            session.rewrite = workers.rewrite_for(worker, recorded, first)
            session.first_key = first
            session.in_step = True
            session.draw_together = functools.partial(workers.draw_together, worker, first)
        return session


class _SavingSession(ReplaySession):
    """Knows which checkpoint it was restored from, and says so when one could not be written.

    Attributes:
        first_key: The number of the first collective, where several processes train in step.
    """

    restored_from: str | None = None
    first_key = 0

    def _evaluate(self, tensors, ops, feeds) -> list[tf.Tensor]:
        try:
            with peers.needed() if self.in_step else contextlib.nullcontext():
                return super()._evaluate(tensors, ops, feeds)
        except tf.errors.OpError as error:
            behind = self.recorded.ancestors(op.name for op in (*(t.op for t in tensors), *ops))
            if any(self.recorded[name].op == "SaveV2" for name in behind):
                raise checkpoints.not_written(error) from error
            raise


class _SessionManager(tf1.train.SessionManager):
    """TensorFlow's start-up (restore or init, local init, readiness), on a session we made.

    `_restore_checkpoint` is private, but the one place where a SessionManager makes its session.
    """

    def __init__(self, session: _SavingSession, **kwargs):
        super().__init__(**kwargs)
        self._session = session

    def _restore_checkpoint(
        self,
        master,
        saver=None,
        checkpoint_dir=None,
        checkpoint_filename_with_path=None,
        **unused,
    ):
        del master, unused
        session = self._session
        known = [checkpoint_filename_with_path] if checkpoint_filename_with_path else []
        if checkpoint_dir and not known:
            known = checkpoints_up_to_latest(checkpoint_dir)
        if not saver or not known:
            return session, False
        checkpoints.restore(saver, session, known[-1])
        session.restored_from = known[-1]
        if not checkpoint_filename_with_path:
            saver.recover_last_checkpoints(known)  # the saver will in time remove these
        return session, True
