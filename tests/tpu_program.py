"""Traces what a TPUEstimator would run on a TPUStrategy; see `xla/tpu_program.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.engines import Request, Step, engine_for
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator, replay_of
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.engine.xla.tpu_program import (
    TpuProgram,
    traced_train_function,
)
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph


def traced_training(estimator: Any, input_fn: Callable) -> tuple[TpuProgram, Replay]:
    """The program of the looped train function, with all that the host_call fetches."""
    with recording_graph(estimator):
        recording = record_for(estimator, ModeKeys.TRAIN, input_fn)
        replay = make_replay(recording)
        return TpuProgram(traced_train_function(replay, recording.spec)), replay


def started_training(estimator: Any, input_fn: Callable) -> tuple[Any, Replay]:
    """The train function that a program on a TPU would run, and its replay, as it starts.

    Its variables have values on all cores: as `rehearsal(..., runs=False)` stands for these.
    """
    with recording_graph(estimator):
        recording = record_for(estimator, ModeKeys.TRAIN, input_fn)
        replay = ReplaySessionCreator(recording).create_session().replay
        spec = recording.spec
        step = Step(spec.train_op.name, loss=spec.loss.name, keeps_loss=True)
        request = Request((spec.loss.name,), (spec.train_op.name,))
        with modern_world():
            (function,) = engine_for(replay, step, request).functions
        return function, replay


def make_replay(recording: Recording) -> Replay:
    """A replay, initialised if variables on the strategy's hosts can be made in this process."""
    if len(devices.hosts(recording.strategy)) == 1:
        return ReplaySessionCreator(recording).create_session().replay
    return replay_of(recording)
