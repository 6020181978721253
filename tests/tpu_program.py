"""Traces what a TPUEstimator would run on a TPUStrategy; see `xla/tpu_program.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator, replay_of
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from estimator2strategy.tools.xla.tpu_program import (
    TpuProgram,
    traced_train_function,
)


def traced_training(estimator: Any, input_fn: Callable) -> tuple[TpuProgram, Replay]:
    """The program of the looped train function, with all that the host_call fetches."""
    with recording_graph(estimator):
        recording = record_for(estimator, ModeKeys.TRAIN, input_fn)
        replay = make_replay(recording)
        return TpuProgram(traced_train_function(replay, recording.spec)), replay


def make_replay(recording: Recording) -> Replay:
    """A replay, initialised if variables on the strategy's hosts can be made in this process."""
    if len(devices.hosts(recording.strategy)) == 1:
        return ReplaySessionCreator(recording).create_session().replay
    return replay_of(recording)
