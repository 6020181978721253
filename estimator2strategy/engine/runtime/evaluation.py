"""Runs an evaluation: its metrics, a loop over batches, results and events."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.record.host_call import GLOBAL_STEP, metric_pairs
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.engines import How, Step
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime import jax_hosts
from estimator2strategy.engine.runtime.empty_input import warn_of_no_batch
from estimator2strategy.engine.runtime.lookahead import (
    Iterations,
    IterationsPerLoop,
    Lookahead,
    LoopUnit,
)
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator
from estimator2strategy.engine.runtime.payback import EVALUATION
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.runtime.session_config import not_rewritten

tf1 = tf.compat.v1
Hook: TypeAlias = tf1.train.SessionRunHook


def stops(steps: int | None) -> list[tf1.train.SessionRunHook]:
    """The hooks that end an evaluation after so many batches; none if it has no such number.

    Raises:
        ValueError: `steps` is not positive.
    """
    if steps is None:
        return []
    if steps <= 0:
        raise ValueError(f"Must specify steps > 0, given: {steps}")
    return [_tf_private.StopAfterNEvalsHook(num_evals=steps)]


class Evaluation:
    """A recorded evaluation, to be run on a checkpoint, or on one after another.

    Must be made with `recording.graph` as the default graph.

    Attributes:
        recording: The recording, metrics included.
        own_hooks: The hooks of model_fn's spec.
        restored_from: The checkpoint that the last run has restored, if any.

    Source: `_evaluate_once`, tensorflow/python/training/evaluation.py.
    """

    def __init__(self, recording: Recording):
        self.restored_from: str | None = None
        metrics = recording.metrics
        if metrics is None:
            metrics = metric_pairs(recording.spec)
        self.own_hooks = tuple(recording.spec.evaluation_hooks or ())
        eval_step = _tf_private.get_or_create_eval_step()
        spec = _initialising_metrics(recording.spec)
        self.recording = dataclasses.replace(recording, spec=spec, metrics=metrics)
        updates = [update for _, update in metrics.values()]
        self._eval_op = tf.group(*updates, tf1.assign_add(eval_step, 1, use_locking=True))
        with tf.control_dependencies([self._eval_op]):
            self._batches_done = tf.identity(eval_step.read_value())
        self._finals = {name: value for name, (value, _) in metrics.items()}
        self._finals[GLOBAL_STEP] = tf1.train.get_global_step()

    def run(
        self,
        checkpoint_path: str | None,
        hooks: Sequence[Hook],
        init_fn: Callable[[Any], None] | None = None,
        store: ReplayCache | None = None,
        give_values: Callable[[SavingSession], None] | None = None,
        look_up: Callable[[], str | None] | None = None,
    ) -> dict[str, Any]:
        """Runs until a hook stops it or the input ends.

        Args:
            checkpoint_path: The checkpoint to restore; None: variables have their initial values.
            hooks: Called around each batch, beside those of the spec.
            init_fn: Without a checkpoint: `init_fn(session)` may change the variables.
            store: Keeps what was traced for another run, or another evaluation that is the same.
            give_values: Without a checkpoint; see ReplaySessionCreator.
            look_up: With a checkpoint; see ReplaySessionCreator.

        Returns:
            Name -> numpy value, `global_step` included.
        """
        recording = self.recording
        for hook in hooks:
            if isinstance(hook, _tf_private.StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(self._batches_done)
        final_hook = _Finals(self._finals)
        all_hooks = [*recording.input_hooks, *hooks, *self.own_hooks, final_hook]
        all_hooks = jax_hosts.hooks_of(recording, all_hooks)
        of_program = [
            hook for hook in hooks if not isinstance(hook, _tf_private.StopAfterNEvalsHook)
        ]
        tf1.logging.info("Starting evaluation at " + time.strftime("%Y-%m-%dT%H:%M:%S"))
        started = time.time()
        creator = ReplaySessionCreator(
            recording,
            checkpoint_path=checkpoint_path,
            init_fn=init_fn,
            store=store,
            give_values=give_values,
            only_reads=not (of_program or self.own_hooks),
            look_up=look_up,
        )
        ran: list[int] = []
        with (
            recording.graph.as_default(),
            creator.recovery.explaining_the_end(
                lambda batches: f"The results of {batches} batches are gone: evaluate again."
            ),
            tf1.train.MonitoredSession(session_creator=creator, hooks=all_hooks) as monitored,
        ):
            # The `with` swallows the error with which an input ends.
            _loop(monitored, creator, self._eval_op, _pace(recording, all_hooks), ran)
        assert creator.session
        self.restored_from = creator.session.restored_from
        if not sum(ran):
            warn_of_no_batch("evaluate: the loss and the metrics are of nothing")
        tf1.logging.info(f"Inference Time : {time.time() - started:0.5f}s")
        tf1.logging.info("Finished evaluation at " + time.strftime("%Y-%m-%d-%H:%M:%S"))
        return cast(dict[str, Any], final_hook.final_ops_values)

    @property
    def scaffold(self) -> tf1.train.Scaffold:
        return self.recording.spec.scaffold

    @property
    def can_be_reused(self) -> bool:
        """True if another checkpoint can use it: not on a TPU, whose programs hold variables."""
        return not is_tpu(self.recording.strategy)


class _Finals(tf1.train.FinalOpsHook):
    """Fetches the results at the end; what does so runs once, and pays for no rewriting."""

    def end(self, session: tf1.Session) -> None:
        with not_rewritten():
            super().end(session)


def _initialising_metrics(spec: Any) -> Any:
    """Makes a local_init_op of the program's own initialise the metrics' variables too.

    Source: `_evaluate_build_graph`, tensorflow_estimator 2.15 estimator.py.
    """
    if not spec.scaffold.local_init_op:
        return spec
    default = tf1.train.Scaffold.default_local_init_op()
    scaffold = tf1.train.Scaffold(
        local_init_op=tf.group(spec.scaffold.local_init_op, default),
        copy_from_scaffold=spec.scaffold,
    )
    return spec._replace(scaffold=scaffold)


def _pace(recording: Recording, hooks: Sequence[Hook]) -> Lookahead | Iterations:
    if recording.iterations is None:
        return Lookahead(hooks, EVALUATION)
    # Several cores evaluate all batches in one call, as a TPU did.
    return Iterations(IterationsPerLoop(sys.maxsize, LoopUnit.STEPS), hooks)


def _loop(
    monitored: tf1.train.MonitoredSession,
    creator: ReplaySessionCreator,
    eval_op: tf.Operation,
    pace: Lookahead | Iterations,
    ran: list[int],
) -> None:
    """Runs batch after batch until something stops it; notes in `ran` how many."""
    batches = 0

    def expect(session: SavingSession) -> None:
        alone = pace.pays_no_loop(batches, session.runs)
        step = Step(eval_op.name, How.ONE_BY_ONE if alone else How.PIPELINED)
        session.expect(step, pace.steps(batches))

    def begin_anew(session: SavingSession) -> None:
        nonlocal batches
        batches = 0
        expect(session)

    creator.on_session = begin_anew
    while not monitored.should_stop():
        assert creator.session  # a MonitoredSession makes it first of all
        expect(creator.session)
        monitored.run(eval_op)
        assert creator.session.ran
        pace.ran(creator.session.ran.steps)
        batches += creator.session.ran.steps
        ran.append(creator.session.ran.steps)
        creator.recovery.got_to(batches)


def write_results(folder: str, results: Mapping[str, Any], checkpoint_path: str | None) -> None:
    """Logs results, and writes them as events where TensorBoard looks for them.

    Must be called in graph mode: FileWriters are refused in eager mode.

    Source: `_write_dict_to_summary`, tensorflow_estimator 2.15.
    """
    step = int(results[GLOBAL_STEP])
    shown = {k: v for k, v in sorted(results.items()) if not isinstance(v, bytes)}
    text = ", ".join(f"{name} = {value!s}" for name, value in shown.items())
    tf1.logging.info("Saving dict for global step %d: %s", step, text)
    writer = tf1.summary.FileWriterCache.get(folder)
    summary = tf1.Summary()
    for name, value in results.items():
        if name != GLOBAL_STEP and value is not None:
            _add_value(summary, name, value)
    writer.add_summary(summary, step)
    if checkpoint_path:
        tf1.logging.info(
            "Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint_path
        )
        path = tf1.Summary()
        tensor = tf.make_tensor_proto(checkpoint_path, tf.string)
        path.value.add(tag="checkpoint_path", tensor=tensor)
        writer.add_summary(path, step)
    writer.flush()


def _add_value(summary: tf1.Summary, name: str, value: Any) -> None:
    """Adds one result: a number, a vector (as a tensor), or a serialized Summary (as its parts)."""
    if isinstance(value, (float, int, np.floating, np.integer)):
        summary.value.add(tag=name, simple_value=float(value))
    elif isinstance(value, bytes):
        try:
            parts = tf1.Summary.FromString(value)
        except Exception:  # protobuf's DecodeError, whichever implementation is installed
            tf1.logging.warn("Skipping summary for %s, cannot parse string to Summary.", name)
            return
        for i, part in enumerate(parts.value):
            part.tag = f"{name}/{i}"
        summary.value.extend(parts.value)
    elif isinstance(value, np.ndarray):
        summary.value.add(tag=name, tensor=tf.make_tensor_proto(value))
    else:
        tf1.logging.warn(
            "Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or "
            "np.ndarray or a serialized string of Summary.",
            name,
        )
