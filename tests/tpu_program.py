"""Traces what a TPUEstimator would run on a TPUStrategy; see `xla/tpu_program.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator
from estimator2strategy.tools.xla.tpu_program import (
    TpuProgram,
    session_without_values,
    traced_train_function,
)


def traced_training(estimator: Any, input_fn: Callable) -> tuple[TpuProgram, ReplaySession]:
    """The program of the looped train function, with all that the host_call fetches."""
    with estimator._recording() as graph:
        recording = estimator._record_train(graph, input_fn)
        session = make_session(recording)
        return TpuProgram(traced_train_function(session, recording)), session


def make_session(recording: Recording) -> ReplaySession:
    """A session, initialised if variables on the strategy's hosts can be made in this process."""
    if len(devices.hosts(recording.strategy)) == 1:
        return ReplaySessionCreator(recording).create_session()
    return session_without_values(recording)
