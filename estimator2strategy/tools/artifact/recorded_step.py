"""The training step of an Estimator with all values that it starts with; none of it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.runtime.training import add_default_saver
from estimator2strategy.engine.user_code import location
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.engine.xla.core_program import core_program
from estimator2strategy.errors import RecordingError, UnsupportedError
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from estimator2strategy.estimator.warm_start import warm_start
from estimator2strategy.tools.check.levels.recorded_graph import flat_with_names

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class RecordedStep:
    """A training step.

    Attributes:
        program: The part of the recording that a core runs, or the one device.
        names: For each feed, its name for people: "features/x", "labels".
        loss: The number of the output that is the loss.
        values: Name -> value of all variables that a checkpoint has, and of the step's others.
        first_batch: For each feed, its value in the first batch; those of all replicas, one after
            the other along the first axis.
        seed: The program's `tf_random_seed`.
        state: The variables and random streams of the session that was started.
    """

    program: CoreProgram
    names: tuple[str, ...]
    loss: int
    values: dict[str, np.ndarray]
    first_batch: tuple[np.ndarray, ...]
    seed: int | None
    state: State

    def places(self, stream: tf.Variable) -> np.ndarray:
        """The places of random ops in their streams; with several replicas, those of each."""
        with modern_world():
            places = [self._places(stream, r) for r in range(self.program.replicas)]
        return np.stack(places) if len(places) > 1 else places[0]

    def _places(self, stream: tf.Variable, replica: int) -> np.ndarray:
        if replica == 0:
            return np.asarray(stream.numpy())
        twins = self.state.random_streams(replica).counterparts([stream.handle])
        value = tf.raw_ops.ReadVariableOp(resource=twins[id(stream.handle)], dtype=stream.dtype)
        return np.asarray(value.numpy())


@contextlib.contextmanager
def recorded_step(
    estimator: Any, input_fn: Callable[..., Any], checkpoint: str | None
) -> Iterator[RecordedStep]:
    """Records a training, and starts its session: variables have values inside of the context.

    Raises:
        RecordingError: It cannot be recorded; UnsupportedError, if not as one program.
    """
    names: dict[str, str] = {}
    with recording_graph(estimator):
        recording = _recorded(estimator, input_fn, names)
        program = _without_unused_strings(
            core_program(recording, [recording.spec.loss], [_op(recording.spec.train_op)])
        )
        _check_variables(recording.graph)
        if checkpoint is None:
            warm_start(estimator.e2s_parts.warm_start_from, estimator.latest_checkpoint())
        add_default_saver(estimator.config, recording.spec.scaffold, None)
        creator = ReplaySessionCreator(recording, **_start(estimator, checkpoint))
        with tf1.train.MonitoredSession(creator, hooks=recording.input_hooks):
            session = creator.session
            assert session
            yield RecordedStep(
                program,
                tuple(names.get(feed, feed.removesuffix(":0")) for feed in program.feeds),
                _number_of_loss(recording, program),
                _values(session, program),
                _first_batch(session, recording, program, input_fn),
                estimator.config.tf_random_seed,
                session.state,
            )


def _recorded(estimator: Any, input_fn: Callable[..., Any], names: dict[str, str]) -> Recording:
    """The recording of a training; `names` gets the path of each tensor that model_fn takes."""
    model_fn = estimator.e2s_parts.program.model_fn

    @functools.wraps(model_fn)
    def noted_model_fn(*args: Any, **kwargs: Any) -> Any:
        given = {"features": kwargs.get("features", args[0] if args else None)}
        given["labels"] = kwargs.get("labels")
        parts = {name: part for name, part in given.items() if part is not None}
        names.update((tensor.name, path) for path, tensor in flat_with_names(parts))
        return model_fn(*args, **kwargs)

    # A copy, because a TPUEstimator calls model_fn itself.
    return record_for(estimator.e2s_copy(model_fn=noted_model_fn), ModeKeys.TRAIN, input_fn)


def _start(estimator: Any, checkpoint: str | None) -> dict[str, Any]:
    if checkpoint is None:
        return {"checkpoint_dir": estimator.model_dir}
    if os.path.isdir(checkpoint):
        latest = tf.train.latest_checkpoint(checkpoint)
        if latest is None:
            raise RecordingError(f"there is no checkpoint in the folder {checkpoint}")
        checkpoint = latest
    return {"checkpoint_path": checkpoint}


def _without_unused_strings(program: CoreProgram) -> CoreProgram:
    """The program without those feeds of strings that the model does not look at."""
    used = {edge for name in program.nodes for edge in program.recorded[name].input}
    used |= {edge + ":0" for edge in used if ":" not in edge}
    feeds = tuple(
        feed for feed in program.feeds if program.spec(feed).dtype != tf.string or feed in used
    )
    kept = set(map(input_node, feeds)) == set(map(input_node, program.feeds))
    return dataclasses.replace(program, feeds=feeds) if kept else program


def _check_variables(graph: tf.Graph) -> None:
    for variable in graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES):
        if getattr(variable, "_save_slice_info", None):
            raise UnsupportedError(
                f"The step cannot be exported: {variable.op.name} is a part of a variable that a "
                "partitioner has cut, and the exported step has whole variables.\n"
                "  Leave the partitioner out: on one device it is of no use."
            )


def _number_of_loss(recording: Recording, program: CoreProgram) -> int:
    loss = recording.spec.loss.name
    for splice in recording.splices:
        if splice.model is not None:
            return splice.outputs.index(loss)
    return program.outputs.index(loss)


def _values(session: SavingSession, program: CoreProgram) -> dict[str, np.ndarray]:
    saved = session.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
    nodes = dict.fromkeys([*program.variables, *(variable.op.name for variable in saved)])
    with modern_world():
        return {
            node: session.replay.read(node).numpy()
            for node in nodes
            if session.state.has_value(node)
        }


def _first_batch(
    session: SavingSession,
    recording: Recording,
    program: CoreProgram,
    input_fn: Callable[..., Any],
) -> tuple[np.ndarray, ...]:
    model = next((splice for splice in recording.splices if splice.model is not None), None)
    names: Sequence[str] = model.inputs if model else program.feeds
    tensors = [session.graph.get_tensor_by_name(name) for name in names]
    try:
        values = [value.numpy() for value in session.evaluate(tensors)] if tensors else []
    except tf.errors.OutOfRangeError:
        raise RecordingError(f"input_fn {location(input_fn)} has no batch at all") from None
    if model is None:
        return tuple(values)
    size = len(program.feeds)
    parts = [values[i::size] for i in range(size)]
    if program.replicas > 1 and any(part[0].ndim == 0 for part in parts):
        raise UnsupportedError(
            "The step cannot be exported for several replicas: input_fn returns a scalar, which "
            "has no axis to deal out.\n  Give it an axis of examples, or use a constant."
        )
    return tuple(np.concatenate(part) if part[0].ndim else part[0] for part in parts)


def _op(fetch: Any) -> Any:
    return fetch if isinstance(fetch, tf.Operation) else fetch.op
