"""TensorFlow's own MonitoredSession, on a session that replays.

Hooks, scaffolds, savers and recovery are then not imitated: they are TensorFlow's.
"""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy.plan.graph import RecordedGraph
from estimator2strategy.record.recording import Recording
from estimator2strategy.replay.session import ReplaySession
from estimator2strategy.replay.state import State
from estimator2strategy.runtime import checkpoints, devices

tf1 = tf.compat.v1


class ReplaySessionCreator(tf1.train.SessionCreator):
    """Makes the session of a recording: restored from a checkpoint, or initialised.

    Args:
        recording: Whose graph to replay.
        checkpoint_dir: Restore the latest checkpoint in it, if there is one.
        checkpoint_path: Restore this one.
    """

    def __init__(
        self,
        recording: Recording,
        checkpoint_dir: str | None = None,
        checkpoint_path: str | None = None,
    ):
        self._recording = recording
        self._scaffold = recording.spec.scaffold or tf1.train.Scaffold()
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_path = checkpoint_path
        self.session: ReplaySession | None = None

    def create_session(self) -> ReplaySession:
        scaffold = self._scaffold
        scaffold.finalize()
        strategy, on_cores = self._recording.strategy, self._recording.on_cores
        hosts = {host.device for host in devices.hosts(strategy)} - {""}
        recorded = RecordedGraph(self._recording.graph, hosts)
        session = ReplaySession(recorded, State(recorded, strategy, on_cores))
        session.splices.extend(self._recording.splices)
        manager = _SessionManager(
            session,
            local_init_op=scaffold.local_init_op,
            ready_op=scaffold.ready_op,
            ready_for_local_init_op=scaffold.ready_for_local_init_op,
            graph=recorded.graph,
            local_init_feed_dict=scaffold.local_init_feed_dict,
        )
        manager.prepare_session(
            "",
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_path,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )
        self.session = session
        return session


class _SessionManager(tf1.train.SessionManager):
    """TensorFlow's start-up (restore or init, local init, readiness), on a session we made.

    `_restore_checkpoint` is private, but the one place where a SessionManager makes its session.
    """

    def __init__(self, session: ReplaySession, **kwargs):
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
        state = None
        path = checkpoint_filename_with_path
        if checkpoint_dir and not path:
            state = tf.train.get_checkpoint_state(checkpoint_dir)
            path = state and state.model_checkpoint_path
        if not saver or not path:
            return session, False
        checkpoints.restore(saver, session, path)
        if state:
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return session, True
