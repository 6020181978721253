"""Training: the hooks that Estimator added, the session, the loop."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine.plan.cardinality import is_endless
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.engines import How, Step
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime import jax_hosts, worker_steps
from estimator2strategy.engine.runtime.console import live_line
from estimator2strategy.engine.runtime.empty_input import warn_of_no_steps
from estimator2strategy.engine.runtime.hooks import FetchingHook
from estimator2strategy.engine.runtime.input_position import InputPosition
from estimator2strategy.engine.runtime.interruption import Interruption
from estimator2strategy.engine.runtime.lookahead import Iterations, Lookahead, warn_of_missed_steps
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator
from estimator2strategy.engine.runtime.payback import TRAINING
from estimator2strategy.engine.runtime.profiling import Profile
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.runtime.saving import LastSaveHook, SaverHook, can_save_beside
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.runtime.sharded_saving import default_saver
from estimator2strategy.engine.runtime.training_options import TrainingOptions
from estimator2strategy.engine.runtime.unfinished_saves import SaveMarker
from estimator2strategy.engine.runtime.update_races import tell_races
from estimator2strategy.engine.runtime.worker_steps import SameStartHook
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.errors import UnsupportedError

tf1 = tf.compat.v1
Hook: TypeAlias = tf1.train.SessionRunHook


def train(
    recording: Recording,
    config: Any,
    hooks: Sequence[Hook],
    saving_listeners: Sequence[tf1.train.CheckpointSaverListener],
    options: TrainingOptions,
    store: ReplayCache | None = None,
) -> Any:
    """Runs the recorded training until a hook stops it or the input ends.

    Must be called with `recording.graph` as the default graph.

    Args:
        store: Keeps what was traced for another training that is the same.

    Returns:
        The loss of the last step (numpy), None when no step ran.

    Source: `Estimator._train_with_estimator_spec`, tensorflow_estimator 2.15.
    """
    spec = recording.spec
    _refuse_jit_on_several(recording, options)
    tell_races(recording)
    summarize_loss(spec.loss)
    add_default_saver(config, spec.scaffold, options.checkpoint_shards)
    several_hosts = recording.jax is not None and recording.jax.of_several_hosts
    beside = options.async_checkpoints and can_save_beside(recording) and not several_hosts
    savers, all_hooks = training_hooks(recording, config, hooks, saving_listeners, beside)
    position = None
    if config.is_chief:
        has_queues = recording.queues is not None
        position = _input_position(config.model_dir, options, all_hooks, has_queues)
        SaveMarker.attach(config.model_dir, all_hooks)
    elif several_hosts:
        position = _position_of_other_host(config.model_dir, options, recording, all_hooks)
    is_kept = options.resume_input and recording.queues is None
    all_hooks = jax_hosts.hooks_of(recording, all_hooks, position if is_kept else None)
    creator = ReplaySessionCreator(
        recording,
        checkpoint_dir=config.model_dir,
        store=store,
        max_restarts=options.max_restarts,
    )
    with Interruption() as interruption:
        # A checkpoint in the making is restored; where training fails, no hook's `end` is called.
        creator.on_lost = functools.partial(_wait_for, savers)
        try:
            loss = _run(recording, creator, all_hooks, options, interruption)
        finally:
            creator.on_lost()
        if position and config.is_chief and not interruption.requested:
            position.remove()  # the next training starts its input anew
        interruption.explain(config.model_dir)
    if loss is None and creator.session:
        loss = creator.session.last_loss()
    if loss is None:
        warn_of_no_steps()
    return loss


def _run(
    recording: Recording,
    creator: ReplaySessionCreator,
    hooks: Sequence[Hook],
    options: TrainingOptions,
    interruption: Interruption,
) -> Any:
    """Runs the session; returns the loss of the last step, None where the input has ended."""
    logged = FetchingHook()
    monitor = _on_tpu if is_tpu(recording.strategy) else tf1.train.MonitoredSession
    with contextlib.ExitStack() as afterwards, monitor(creator, [*hooks, logged]) as monitored:
        pace = _pace(recording, hooks)
        logged.tensors = pace.logged()
        assert creator.session  # a MonitoredSession makes it first of all
        profile = Profile(options.profile_folder)
        afterwards.enter_context(profile.current())
        steps = _Steps(recording, creator.session, pace, options, profile)
        return _loop(monitored, creator, steps, interruption, profile)
    return None  # the `with` has swallowed the error with which an input ends


def _refuse_jit_on_several(recording: Recording, options: TrainingOptions) -> None:
    if options.jit_compile and (recording.strategy or recording.worker):
        raise UnsupportedError(
            "jit_compile is for training on one device; here each core runs "
            "iterations_per_loop steps in one call already. Leave it out."
        )


def _input_position(
    model_dir: str, options: TrainingOptions, hooks: list[Hook], has_queues: bool
) -> InputPosition:
    """The place in the input, which the savers among `hooks` keep if the options ask for it.

    It is a hook itself, and then the last of them. Queues have no place that could be kept.
    """
    position = InputPosition(model_dir)
    if options.resume_input and not has_queues:
        position.attach(hooks)
        hooks.append(position)
    else:
        position.remove()
    return position


def _position_of_other_host(
    model_dir: str, options: TrainingOptions, recording: Recording, hooks: list[Hook]
) -> InputPosition | None:
    """The place in the input of a host for which the chief writes the checkpoints."""
    job = jax_hosts.joined()
    if not options.resume_input or recording.queues is not None or job is None:
        return None
    position = InputPosition(model_dir, host=job.number)
    hooks.append(position)
    return position


@contextlib.contextmanager
def _on_tpu(
    creator: ReplaySessionCreator, hooks: Sequence[Hook]
) -> Iterator[tf1.train.MonitoredSession]:
    """A MonitoredSession whose TPU may be lost when the last step is done."""
    savers = [hook for hook in hooks if isinstance(hook, SaverHook)]
    hooks = [*hooks, LastSaveHook(savers)]
    with (
        creator.recovery.explaining_the_end(creator.what_is_left),
        tf1.train.MonitoredSession(creator, hooks) as monitored,
    ):
        yield monitored


def _wait_for(savers: Sequence[SaverHook]) -> None:
    for hook in savers:
        hook.wait()


def _pace(recording: Recording, hooks: Sequence[Hook]) -> Lookahead | Iterations:
    """The lengths of blocks: as the hooks allow, or, on cores, as the program says."""
    if recording.iterations is None:
        return Lookahead(hooks, TRAINING, watched=[recording.spec.loss])
    warn_of_missed_steps(recording.iterations, hooks)
    return Iterations(recording.iterations, hooks)


def training_hooks(
    recording: Recording,
    config: Any,
    hooks: Sequence[Hook],
    saving_listeners: Sequence[tf1.train.CheckpointSaverListener],
    beside: bool,
) -> tuple[list[SaverHook], list[Hook]]:
    """(the savers that were added, all hooks in the order in which they run).

    Args:
        beside: True if training may go on while a checkpoint is written.
    """
    spec = recording.spec
    every_step = [*recording.input_hooks, *hooks, tf1.train.NanTensorHook(spec.loss)]
    if config.log_step_count_steps is not None:
        tensors = {"loss": spec.loss, "step": tf1.train.get_global_step()}
        every_step.append(
            tf1.train.LoggingTensorHook(tensors, every_n_iter=config.log_step_count_steps)
        )
    every_step += spec.training_hooks
    added = _saver_hooks(spec, config, every_step, saving_listeners, beside)
    all_hooks = [*_monitors(spec, config), *every_step]
    if config.is_chief:
        all_hooks = [*added, *spec.training_chief_hooks, *all_hooks]
    if recording.worker:
        # First: nobody writes a checkpoint, which others would restore, before all agree.
        all_hooks = [SameStartHook(recording.worker, _op(spec.train_op).name), *all_hooks]
    return added, all_hooks


class _Steps:
    """The definition of the steps of a training: in a loop of them, or alone before one pays.

    Args:
        recording, options: Of the training.
        session: Its first session.
        pace: Chooses the lengths of blocks.
        profile: Says if waits for batches are measured.

    Attributes:
        op: Name of the op that runs once a step.
        loss: Name of the loss.
        pace: As above.
    """

    def __init__(
        self,
        recording: Recording,
        session: SavingSession,
        pace: Lookahead | Iterations,
        options: TrainingOptions,
        profile: Profile,
    ):
        self.pace = pace
        self.op, self.loss = _op(recording.spec.train_op).name, recording.spec.loss.name
        counter = tf1.train.get_global_step()
        # Cores ran a block to its end, and the host saw the last loss.
        self._plain = Step(
            self.op,
            loss=self.loss,
            stops_at_nan=recording.iterations is None and not is_tpu(recording.strategy),
            counter=counter.handle.op.name,
        )
        self._alone = dataclasses.replace(self._plain, how=How.ONE_BY_ONE, keeps_loss=True)
        self._may_be_alone = not options.jit_compile and not profile.measures_input
        self._options, self._measures = options, profile.measures_input
        self._settled: Step | None = None
        if recording.worker:
            take = functools.partial(
                worker_steps.take_together, recording.worker, session.first_key
            )
            self._settled = dataclasses.replace(self._alone, how=How.TOGETHER, take_together=take)

    def next(self, session: SavingSession, number: int) -> Step:
        """The definition of the steps after step `number`, which `session` will run."""
        if self._settled:
            return self._settled
        if self._may_be_alone and self.pace.pays_no_loop(number, session.runs):
            return self._alone
        self._settled = dataclasses.replace(
            self._plain,
            how=How.JIT if self._options.jit_compile else How.LOOP,
            keeps_loss=_may_end(session),
            measures_input=self._measures,
            checks_compiled=self._options.checks_compiled,
        )
        return self._settled


def _loop(
    monitored: tf1.train.MonitoredSession,
    creator: ReplaySessionCreator,
    steps: _Steps,
    interruption: Interruption,
    profile: Profile,
) -> Any:
    """Runs block after block until something stops it; returns the loss of the last step."""
    graph, pace = _session(creator).graph, steps.pace
    fetches = [graph.get_operation_by_name(steps.op), graph.get_tensor_by_name(steps.loss)]
    global_step = tf1.train.get_global_step(graph)

    def step_now() -> int:
        return int(_session(creator).value(global_step))

    number = first = step_now()
    loss = None

    def expect(session: SavingSession, number: int) -> None:
        session.expect(steps.next(session, number), pace.steps(number), line.compiling)

    with live_line(first, pace.last_step()) as line:
        # Where a session was lost, in the middle of a run: in the new one nothing ran yet.
        creator.on_session = lambda session: expect(session, int(session.value(global_step)))
        while not monitored.should_stop() and not interruption.requested:
            expect(_session(creator), number)
            try:
                with profile.block(number), _telling_nan(creator, step_now):
                    loss = monitored.run(fetches)[1]
            except tf.errors.OutOfRangeError:
                number = step_now()
                tf1.logging.info(profile.verdict(number - first, _session(creator).state.gauges))
                _log_end_of_input(first, number, pace.last_step())
                raise
            ran = _session(creator).ran
            assert ran
            profile.ran(ran)
            pace.ran(ran.steps)
            number = step_now()
            creator.recovery.got_to(number)
            line.show(number, loss)
    tf1.logging.info(profile.verdict(number - first, _session(creator).state.gauges))
    return loss


def _session(creator: ReplaySessionCreator) -> SavingSession:
    """Returns the current session: a lost one is replaced in the middle of a run."""
    assert creator.session
    return creator.session


@contextlib.contextmanager
def _telling_nan(creator: ReplaySessionCreator, step_now: Callable[[], int]) -> Iterator[None]:
    """Logs, after the block that the body runs, since which step the loss is NaN."""
    before = _session(creator).ran
    try:
        yield
    finally:
        ran = _session(creator).ran
        if ran and ran is not before and ran.nan_since is not None:
            since = step_now() - ran.steps + ran.nan_since
            tf1.logging.error("The loss is NaN since step %d.", since)


def _log_end_of_input(first_step: int, step: int, last_step: float) -> None:
    done = f"The input ended after {step - first_step} steps, at global step {step}"
    if step < last_step < math.inf:
        tf1.logging.warn("%s; %d were asked for.", done, last_step - first_step)
    else:
        tf1.logging.info("%s.", done)


def _may_end(session: SavingSession) -> bool:
    """True unless no dataset of the recorded input has an end."""
    operations = session.graph.get_operations()
    iterators = [op for op in operations if op.type in ("IteratorV2", "OneShotIterator")]
    datasets = [op.inputs[0] for op in operations if op.type == "MakeIterator"]
    if len(iterators) != len(datasets):
        return True
    session.recorded.refresh()
    endless = {dataset: is_endless(session.recorded, dataset.op.name) for dataset in datasets}
    if False in endless.values():
        return True
    datasets = [dataset for dataset, answer in endless.items() if answer is None]
    if not datasets:
        return False
    try:
        variants = session.evaluate(datasets)
    except tf.errors.OpError:  # a dataset of what hooks will feed, say
        return True
    with modern_world():
        sizes = [tf.raw_ops.DatasetCardinality(input_dataset=variant) for variant in variants]
        return any(size != tf.data.INFINITE_CARDINALITY for size in sizes)


def _op(fetch: tf.Tensor | tf.Operation) -> tf.Operation:
    return fetch if isinstance(fetch, tf.Operation) else fetch.op


def summarize_loss(loss: tf.Tensor) -> None:
    """A `loss` curve for TensorBoard, unless model_fn made one of that name."""
    summaries = tf1.get_collection(tf1.GraphKeys.SUMMARIES)
    if not any(summary.op.name == "loss" for summary in summaries):
        tf1.summary.scalar("loss", loss)
    tf1.add_to_collection(tf1.GraphKeys.LOSSES, loss)


def add_default_saver(config: Any, scaffold: tf1.train.Scaffold, shards: int | None) -> None:
    """The Saver that checkpoints are written and read with, unless the program made its own."""
    if not (scaffold.saver or tf1.get_collection(tf1.GraphKeys.SAVERS)):
        tf1.add_to_collection(tf1.GraphKeys.SAVERS, default_saver(config, shards))


def _saver_hooks(
    spec: Any,
    config: Any,
    every_step: Sequence[Hook],
    saving_listeners: Sequence[tf1.train.CheckpointSaverListener],
    beside: bool,
) -> list[SaverHook]:
    """A CheckpointSaverHook where the config asks for one and the program brought none.

    Args:
        beside: True if training may go on while it writes.
    """
    present = [*every_step, *spec.training_chief_hooks]
    savers = [h for h in present if isinstance(h, tf1.train.CheckpointSaverHook)]
    added = []
    if not savers and (config.save_checkpoints_secs or config.save_checkpoints_steps):
        added = [
            SaverHook(
                config.model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=spec.scaffold,
                save_graph_def=config.checkpoint_save_graph_def,
                beside=beside,
            )
        ]
        savers = added
    if saving_listeners and not savers:
        raise ValueError(
            "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
            "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
        )
    for listener in saving_listeners:
        if listener not in savers[0]._listeners:
            savers[0]._listeners.append(listener)
    return added


def _writes_monitors(config: Any) -> bool:
    """True for the chief; a master evaluates as well, so its first worker writes in its place."""
    jobs = config.cluster_spec.jobs if config.cluster_spec else ()
    if "master" in jobs and "worker" in jobs:
        return (config.task_type, config.task_id) == ("worker", 0)
    return bool(config.is_chief)


def _monitors(spec: Any, config: Any) -> list[Hook]:
    """The hooks that MonitoredTrainingSession adds: for `global_step/sec` and summaries."""
    hooks: list[Hook] = []
    if not _writes_monitors(config):
        return hooks
    if config.log_step_count_steps:
        hooks.append(
            tf1.train.StepCounterHook(
                every_n_steps=config.log_step_count_steps, output_dir=config.model_dir
            )
        )
    if config.save_summary_steps:
        hooks.append(
            tf1.train.SummarySaverHook(
                save_steps=config.save_summary_steps,
                output_dir=config.model_dir,
                scaffold=spec.scaffold,
            )
        )
    return hooks
