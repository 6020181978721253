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
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.queue_session import QueueSession
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.xla.target import JaxTarget


@dataclasses.dataclass(frozen=True)
class Recording:
    """The graph of one `train`, `evaluate` or `predict`, and what was declared with it.

    Attributes:
        graph: The v1 graph; the legacy functions ran in it, nothing of it ran yet.
        spec: The EstimatorSpec that model_fn returned (or stand-ins for it, see `splices`).
        input_hooks: Hooks that start the input; they are the first of all hooks.
        splices: Places at which replay goes on in TF2 code, in the order of their dependence.
        strategy: The strategy whose replicas run model_fn; None: the host runs it.
        replicated: Names of the variables of which each replica has its own copy.
        iterations: `TPUConfig.iterations_per_loop`: the number of steps that hooks see as one.
            None: hooks see every step that they want to see.
        worker: The place of this process among those that train in step; None: it trains alone.
        metrics: Name -> (value, update) of the metrics of an evaluation that replicas count; None:
            the spec's, on the host.
        feeds: The placeholders for a batch, flat, where the caller feeds it.
        jax: The devices of JAX that run the model; None: TensorFlow runs it.
        queues: The Session of the queues that the input reads from; None: from none.
    """

    graph: tf.Graph
    spec: Any
    input_hooks: tuple[tf.compat.v1.train.SessionRunHook, ...] = ()
    splices: tuple[Splice, ...] = ()
    strategy: tf.distribute.Strategy | None = None
    replicated: tuple[str, ...] = ()
    iterations: Any = None
    worker: Any = None
    metrics: Mapping[str, tuple[Any, Any]] | None = None
    feeds: tuple[tf.Tensor, ...] = ()
    jax: JaxTarget | None = None

    @property
    def host_strategy(self) -> tf.distribute.Strategy | None:
        """The strategy of which TensorFlow has variables; JAX's devices have theirs themselves."""
        return None if self.jax else self.strategy

    queues: QueueSession | None = None


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
