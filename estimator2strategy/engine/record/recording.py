"""A recording: the graph that one call of the legacy functions built."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.replay.splice import Splice


@dataclasses.dataclass(frozen=True)
class Recording:
    """The graph of one `train`, `evaluate` or `predict`, and what was declared with it.

    Attributes:
        graph: The v1 graph; the legacy functions ran in it, nothing of it ran yet.
        spec: The EstimatorSpec that model_fn returned (or stand-ins for it, see `splices`).
        input_hooks: Hooks that set the input going, first among the hooks.
        splices: Where replay goes on in TF2 code, in the order of their dependence.
        strategy: Over whose replicas model_fn runs; None: it runs on the host.
        on_cores: Names of the variables that each replica has its own copy of.
        iterations: `TPUConfig.iterations_per_loop`: how many steps hooks see as one. None: they
            are shown every step that they want to see.
        worker: Which of several processes this one is that train in step; None: it trains alone.
        metrics: Name -> (value, update) of the metrics of an evaluation that replicas count; None:
            the spec's, on the host.
    """

    graph: tf.Graph
    spec: Any
    input_hooks: tuple[tf.compat.v1.train.SessionRunHook, ...] = ()
    splices: tuple[Splice, ...] = ()
    strategy: tf.distribute.Strategy | None = None
    on_cores: tuple[str, ...] = ()
    iterations: Any = None
    worker: Any = None
    metrics: Mapping[str, tuple[Any, Any]] | None = None
