"""`EstimatorParts`: all that the rest of the package may know of an Estimator, frozen.

Example:

    parts = model.e2s_parts
    parts.program.model_fn, parts.placement(ModeKeys.TRAIN)
    on_one_device = model.e2s_copy(strategy=None)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.recording import Placement
from estimator2strategy.engine.runtime.evaluation_cache import EvaluationCache
from estimator2strategy.engine.runtime.training_options import TrainingOptions
from estimator2strategy.estimator.warm_start import WarmStartSettings


@dataclasses.dataclass(frozen=True)
class OfTpu:
    """The arguments of a TPUEstimator that an Estimator does not have.

    Attributes:
        batch_sizes: Mode -> global batch size in examples.
    """

    batch_sizes: Mapping[str, int | None]
    batch_axis: Sequence[int] | None
    embedding: Any


@dataclasses.dataclass(frozen=True)
class EstimatorParts:
    """The parts of an Estimator.

    Attributes:
        program: model_fn, params and config themselves, with the calls that a subclass replaced.
        strategy: It trains on the replicas of this one; None: on one device.
        is_tf115: True if it is of a program of TF 1.15.
        placement: Mode -> the devices and processes that it runs on; starts a TPU among them.
        eval_stops: Steps of an evaluation, or None -> the hooks that end it.
        evaluations: Keeps the previous evaluation while it is told to.
        tpu: The parts of a TPUEstimator alone; None for others.
    """

    program: ModelProgram
    strategy: tf.distribute.Strategy | None
    options: TrainingOptions
    warm_start_from: WarmStartSettings | None
    is_tf115: bool
    placement: Callable[[str], Placement]
    eval_stops: Callable[[int | None], list[tf.compat.v1.train.SessionRunHook]]
    evaluations: EvaluationCache
    tpu: OfTpu | None = None
