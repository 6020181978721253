"""The way into the engine: one call of the legacy functions becomes a `Recording`.

    from estimator2strategy.engine.record.on_host import OnHost
    from estimator2strategy.engine.worlds import legacy_world

    program = ModelProgram(model_fn, params, config, EstimatorSpec)
    with legacy_world(), tf.Graph().as_default():
        made = record(program, OnHost(), ModeKeys.TRAIN, input_fn)

A placement says where the program runs: `OnHost`, `OnReplicas` of a strategy, a `Worker` of
several processes, a `FedReplica` of a step that the caller makes; TPUEstimator has one of its own.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.recording import Recording


class Placement(abc.ABC):
    """The devices and processes that one mode of a program runs on; a frozen value."""

    @abc.abstractmethod
    def record_input(self, program: ModelProgram, mode: str, input_fn: Callable[..., Any]) -> Any:
        """Calls input_fn; returns what `record_model` takes. The graph has no model yet."""

    @abc.abstractmethod
    def record_model(self, program: ModelProgram, mode: str, inputs: Any) -> Recording:
        """Calls model_fn on the input that was recorded."""


def record(
    program: ModelProgram, placement: Placement, mode: str, input_fn: Callable[..., Any]
) -> Recording:
    """Calls input_fn and model_fn, each once, in the default graph; nothing of it runs.

    Args:
        program: The model_fn.
        placement: The devices and processes that it is to run on.
        mode: A ModeKeys.
        input_fn: As for `Estimator.train`.

    Returns:
        The graph, and what was declared with it.

    Raises:
        ValueError: A function takes or returns what it must not.
        UnsupportedError, RecordingError: It does what cannot be replayed.
    """
    return placement.record_model(program, mode, placement.record_input(program, mode, input_fn))
