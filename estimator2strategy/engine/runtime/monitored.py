"""TensorFlow's own MonitoredSession, on a session that replays.

So hooks, scaffolds, savers and recovery are TensorFlow's own.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.handle_packing import share_a_cpu
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.shared_state import SharedState
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.runtime import (
    checkpoints,
    devices,
    direct_restore,
    jax_devices,
    jax_hosts,
    liveness,
    worker_steps,
)
from estimator2strategy.engine.runtime.latest_checkpoint import (
    checkpoints_up_to_latest,
    latest_checkpoint,
    using,
)
from estimator2strategy.engine.runtime.preemption import MAX_RESTARTS, Recovery
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.runtime.session_config import not_rewritten, rewritten_a_little
from estimator2strategy.engine.worlds import modern_world

tf1 = tf.compat.v1


class ReplaySessionCreator(tf1.train.SessionCreator):
    """Makes the session of a recording: restored from a checkpoint, or initialised.

    Args:
        recording: The recording to replay.
        checkpoint_dir: Restore the latest checkpoint in it, if there is one.
        checkpoint_path: Restore this one.
        look_up: If that one was removed meanwhile: gives the latest one, to be restored in its
            place. None: it is an error then.
        store: Where runs of such a recording are kept between calls; None: they are freed.
        init_fn: Called after initialisation, if the scaffold has no init_fn.
        max_restarts: How many sessions in a row may be lost; see `Recovery`.
        give_values: `give_values(session)` gives values to what has none, in the place of all
            initialisation and restoring: where variables are shared, most have one.
        only_reads: Nothing that runs in the session asks for the graph's Saver.

    Attributes:
        session: The session, once there is one. MonitoredSession asks for another one when it is
            lost.
        on_lost: Called when a session was lost, before anything else.
        on_session: Called with each session that takes the place of a lost one.
        recovery: See there.
    """

    def __init__(
        self,
        recording: Recording,
        checkpoint_dir: str | None = None,
        checkpoint_path: str | None = None,
        store: ReplayCache | None = None,
        init_fn: Callable[[Any], None] | None = None,
        max_restarts: int = MAX_RESTARTS,
        give_values: Callable[[SavingSession], None] | None = None,
        only_reads: bool = False,
        look_up: Callable[[], str | None] | None = None,
    ):
        self._recording = recording
        self._scaffold = recording.spec.scaffold or tf1.train.Scaffold()
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_path = checkpoint_path
        self._look_up = look_up
        self.session: SavingSession | None = None
        self._store = store
        self._init_fn = init_fn
        self._checked: _Checked | None = None
        self.on_lost: Callable[[], None] = lambda: None
        self.on_session: Callable[[SavingSession], None] = lambda session: None
        self.recovery = Recovery(recording.strategy, max_restarts)
        self._give_values = give_values
        self._only_reads = only_reads

    def create_session(self) -> SavingSession:
        """Makes the session, or another one in place of one that was lost.

        Raises:
            DeviceError: Too many were lost.
        """
        if self._checked is None:
            self._checked = _variables_that_default_ops_check(self._scaffold)
            _leave_out_ready_ops(self._checked)
            leave_out_summaries_of_branches(self._recording.graph)
            self.session = self._started()
            return self.session
        self.on_lost()
        if self.session and self.session.error:
            self.recovery.error, self.session.error = self.session.error, None
        self.recovery.start_again()
        self.session = self._started()
        self.recovery.log(self.session.restored_from)
        self.on_session(self.session)
        return self.session

    def what_is_left(self, step: int) -> str:
        """Says from where a training that got to `step` can go on when its session is lost."""
        path = latest_checkpoint(self._checkpoint_dir) if self._checkpoint_dir else None
        if path is None:
            return f"Training got to global step {step}, and no checkpoint is complete."
        return (
            f"Training got to global step {step}. The latest complete checkpoint is {path}.\n"
            "  Training goes on from there when the program is run again."
        )

    def _saver_left_out(self) -> contextlib.AbstractContextManager[None]:
        path, alone = self._checkpoint_path, self._recording.strategy is None
        if path and self._only_reads and alone and not self._give_values:
            return direct_restore.in_place_of_saver(self._scaffold, path)
        return contextlib.nullcontext()

    def _started(self) -> SavingSession:
        scaffold = self._scaffold
        with self._saver_left_out():
            scaffold.finalize()
        session = self._new_session()
        assert self._checked
        manager = _SessionManager(
            session,
            self._checked,
            self._give_values,
            self._look_up,
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
        except BaseException as error:
            self.recovery.error = error
            session.close()  # MonitoredSession closes only what it was given
            raise
        return session

    def _new_session(self) -> SavingSession:
        graph, worker = self._recording.graph, self._recording.worker
        if worker:
            first = worker_steps.first_key()
            replay = replay_of(self._recording, first_key=first)
            return SavingSession(graph, Runs(replay), liveness.needed, first)
        kept = self._store.take(self._recording) if self._store else None
        runs = kept or Runs(replay_of(self._recording))
        with modern_world():
            runs.revive()
        queues = self._recording.queues
        if queues:
            queues.open()
        around = _around_runs(self._recording)
        session = SavingSession(graph, runs, around, queues=queues)
        if self._store:
            session.keep(functools.partial(self._store.put, self._recording))
        return session


def _around_runs(recording: Recording) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """The context in which each request of a session runs."""
    if recording.jax and recording.jax.of_several_hosts:
        return jax_hosts.needed
    on_one_cpu = share_a_cpu(recording.strategy)
    return rewritten_a_little if on_one_cpu else contextlib.nullcontext


def replay_of(
    recording: Recording, shared: Mapping[str, tf.Variable] | None = None, first_key: int = 0
) -> Replay:
    """A recording on state of its own, but for the variables `shared`, by name.

    Args:
        first_key: The number of the first collective, where several processes train in step.
    """
    worker = recording.worker
    strategy = recording.host_strategy
    hosts = {host.device for host in devices.hosts(strategy)} - {""}
    recorded = RecordedGraph(recording.graph, hosts)
    of = (recorded, strategy, recording.replicated)
    peers = worker_steps.peers_of(worker, recorded, first_key) if worker else None
    state = State(*of, peers) if shared is None else SharedState(*of, shared)
    rewrite = peers.rewrite() if peers else jax_hosts.rewrite_on_host()
    values = jax_devices.values_on(recording.jax, state) if recording.jax else None
    return Replay(recorded, state, recording.splices, rewrite, values)


class _Checked(NamedTuple):
    """The variables that a Scaffold's default ops check; None: the program made these ops."""

    ready: Sequence[tf.Variable] | None
    ready_for_local_init: Sequence[tf.Variable] | None


def leave_out_summaries_of_branches(graph: tf.Graph) -> None:
    """Drops the summaries that branches and loops make: the graph around cannot fetch them."""
    summaries = graph.get_collection_ref(tf1.GraphKeys.SUMMARIES)
    inside = [summary for summary in summaries if summary.graph is not graph]
    if inside:
        summaries[:] = [summary for summary in summaries if summary.graph is graph]
        tf1.logging.warn(
            "Not written, because they are made in a branch of tf.cond or in a loop: summaries %s. "
            "Summarize what tf.cond or tf.while_loop returns.",
            ", ".join(sorted({summary.op.name for summary in inside})),
        )


def _variables_that_default_ops_check(scaffold: tf1.train.Scaffold) -> _Checked:
    """Finds the variables that a Scaffold's default ops will check.

    Must be called before the scaffold is finalized, in its graph.

    Source: the defaults of `tf.compat.v1.train.Scaffold`.
    """
    keys = tf1.GraphKeys
    variables = tf1.global_variables(), tf1.local_variables()
    resources = [*tf1.get_collection(keys.RESOURCES), *tf1.get_collection(keys.LOCAL_RESOURCES)]
    if resources or any(v.op.type != "VarHandleOp" for v in itertools.chain(*variables)):
        return _Checked(None, None)
    own = scaffold.ready_op is not None or tf1.get_collection(keys.READY_OP)
    own_local = scaffold.ready_for_local_init_op is not None or tf1.get_collection(
        keys.READY_FOR_LOCAL_INIT_OP
    )
    return _Checked(
        None if own else [*variables[0], *variables[1]], None if own_local else variables[0]
    )


def _leave_out_ready_ops(checked: _Checked) -> None:
    """Spares a scaffold the ops that ask which variables have a value.

    `_SessionManager` knows without them, and they are many: a sixth of the time in which a small
    program is recorded. A constant stands in their place: all have one when a hook can ask.
    """
    keys = tf1.GraphKeys
    asked = {
        keys.READY_OP: checked.ready,
        keys.READY_FOR_LOCAL_INIT_OP: checked.ready_for_local_init,
    }
    known = [key for key, variables in asked.items() if variables is not None]
    if known:
        none = tf.constant([], tf.string, name="report_uninitialized_variables")
        tf1.get_default_graph().add_to_collections(known, none)


class _SessionManager(tf1.train.SessionManager):
    """TensorFlow's start-up (restore or init, local init, readiness), on a session we made.

    `_restore_checkpoint` is private, but the one place where a SessionManager makes its session. So
    are the questions whether it is ready: what Scaffold's own ops would answer is known without
    making programs of them.
    """

    def __init__(
        self,
        session: SavingSession,
        checked: _Checked,
        give_values: Callable[[SavingSession], None] | None,
        look_up: Callable[[], str | None] | None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self._session = session
        self._checked = checked
        self._give_values = give_values
        self._look_up = look_up

    def _model_ready(self, sess: Any) -> Any:
        if self._checked.ready is None:
            return super()._model_ready(sess)
        return self._have_values(self._checked.ready)

    def _model_ready_for_local_init(self, sess: Any) -> Any:
        if self._checked.ready_for_local_init is None:
            return super()._model_ready_for_local_init(sess)
        return self._have_values(self._checked.ready_for_local_init)

    def _have_values(self, variables: Sequence[tf.Variable]) -> tuple[bool, str | None]:
        """(True if all have a value, the message if not)."""
        names = [variable.op.name for variable in variables]
        with modern_world():
            missing = [name for name in names if not self._session.state.has_value(name)]
        return not missing, "Variables not initialized: " + ", ".join(missing) if missing else None

    def _restore_checkpoint(
        self,
        master: str,
        saver: tf1.train.Saver | None = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: str | None = None,
        **unused: Any,
    ) -> tuple[SavingSession, bool]:
        del master, unused
        session = self._session
        if self._give_values:
            self._give_values(session)
            return session, True
        known: list[str] = []

        def look_up() -> str | None:
            known[:] = checkpoints_up_to_latest(checkpoint_dir)
            return known[-1] if known else None

        again = self._look_up if checkpoint_filename_with_path else look_up
        path = checkpoint_filename_with_path or (look_up() if checkpoint_dir else None)
        if not saver or not path:
            return session, False
        restore = functools.partial(checkpoints.restore, saver, session)
        path, _ = using(path, again, restore)
        session.note_restored(path)
        if known:
            saver.recover_last_checkpoints(known)  # the saver will in time remove these
        return session, True
