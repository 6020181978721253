"""Arguments and strategies that `LegacyModel`, `adapt` and `keras_metrics` refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.replay.xla.target import JaxTarget, Precision
from estimator2strategy.engine.runtime.requested_job import Runtime
from estimator2strategy.engine.runtime.training_options import (
    RUNTIME_RULES,
    TrainingOptions,
    jax_target_of,
)
from estimator2strategy.engine.wrong_argument import ArgumentRule
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator import contract_rules

_INPUT_FN = ArgumentRule(
    lambda value: value is None or callable(value),
    "must be callable",
    "Pass a function that returns a Dataset, such as `lambda: dataset_of(files)`. It is called in "
    "the graph of model_fn.",
)


def _is_steps(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number_of_steps(value: Any) -> bool:
    """True for an int, or an integer scalar of NumPy or TensorFlow."""
    if value is None or isinstance(value, (int, np.integer)):
        return True
    return tf.is_tensor(value) or isinstance(value, (np.ndarray, tf.Variable))


RULES: Mapping[str, ArgumentRule] = {
    **contract_rules.RULES,
    **RUNTIME_RULES,
    "model_fn": ArgumentRule(lambda value: True, "", "Pass a function, or an Estimator."),
    "input_fn": _INPUT_FN,
    "eval_input_fn": _INPUT_FN,
    "predict_input_fn": _INPUT_FN,
    "steps_per_execution": ArgumentRule(
        _is_steps,
        "must be an int of at least 1",
        "Pass the number of steps of one call.",
        ValueError,
    ),
    "num_steps": ArgumentRule(
        _is_number_of_steps, "must be an int", "Pass a number of steps, or None."
    ),
    "path": ArgumentRule(
        lambda value: value is None or contract_rules.is_path(value),
        "must be a path",
        "Pass the path of a checkpoint, or of a folder of checkpoints.",
    ),
}

# A LegacyModel has no Estimator inside, and its name is Keras's.
MODEL_RULES: Mapping[str, ArgumentRule] = {
    **RULES,
    "model_fn": ArgumentRule(
        lambda value: callable(value) and not isinstance(value, type),
        "must be a function",
        "Pass a function model_fn(features, labels, mode, params, config) that returns a spec.",
    ),
    "path": RULES["path"]._replace(holds=contract_rules.is_path),
    "name": ArgumentRule(
        lambda value: value is None or (isinstance(value, str) and "/" not in value),
        "must be a string without a slash",
        "Pass a name, or None.",
        ValueError,
    ),
    "batch": ArgumentRule(
        lambda value: not callable(value) and not isinstance(value, (int, float, str, type(None))),
        "must be a Dataset or a batch",
        "Pass a Dataset, its element_spec, or one batch: (features, labels).",
    ),
    "scope": ArgumentRule(lambda value: True, "", "Pass one of them."),
    "run_eagerly": ArgumentRule(lambda value: True, "", "Leave it out."),
    "of_model_fn": ArgumentRule(lambda value: True, "", "Leave it out."),
}

METRIC_RULES: Mapping[str, ArgumentRule] = {
    "metric_fn": ArgumentRule(
        callable, "must be callable", "Pass eval_metrics[0], a function that returns a dict."
    ),
    "tensors": ArgumentRule(
        lambda value: isinstance(value, (list, tuple, dict)),
        "must be a list or a dict",
        "Pass eval_metrics[1], what metric_fn takes: by position a list, by name a dict.",
    ),
}


def check_strategy(what: str, strategy: Any) -> None:
    """Refuses TensorFlow 2's parameter servers.

    Their steps are functions that a ClusterCoordinator sends to workers. Keras 3 has no such loop,
    and a replay's variables would have to be sharded. TF 1's strategy of that name is Estimator's.

    Args:
        what: What would run under the strategy.
        strategy: A tf.distribute.Strategy, or None.

    Raises:
        UnsupportedError: It is one of parameter servers.
    """
    asynchronous = (
        tf.distribute.ParameterServerStrategy,
        tf.compat.v1.distribute.experimental.ParameterServerStrategy,
    )
    if isinstance(strategy, asynchronous):
        raise UnsupportedError(
            f"{what} is to run under a ParameterServerStrategy, whose workers Keras 3 does not "
            "reach: all would run in this process.\n"
            "  Leave the model to Estimator, which trains over the parameter servers of TF_CONFIG, "
            "or\n"
            "  train in step, under tf.distribute.MirroredStrategy(), or\n"
            "  write the model in TF2 and give its step to a ClusterCoordinator. "
            "See migration_guide/servers.md."
        )


def target_beside(
    strategy: tf.distribute.Strategy, runtime: Runtime | None, precision: Precision | None
) -> JaxTarget | None:
    """The device of JAX that runs a LegacyModel; None: TensorFlow runs it.

    Raises:
        DeviceError, ValueError: See `jax_target_of`.
        UnsupportedError: JAX runs it, and it is made in the scope of several replicas.
    """
    target = jax_target_of(TrainingOptions(runtime=runtime, precision=precision), most=1)
    if target is not None and (strategy.num_replicas_in_sync > 1 or is_tpu(strategy)):
        raise UnsupportedError(
            f"LegacyModel is made under a {type(strategy).__name__}, and runs under JAX, where it "
            "has one device: make it outside of strategy.scope(). A TPUEstimator with use_tpu=True "
            "trains on all devices of JAX."
        )
    return target


def check_one_process(strategy: tf.distribute.Strategy) -> None:
    """Refuses a strategy whose replicas are in several processes, for a LegacyModel.

    Raises:
        UnsupportedError: It spans several.
    """
    replicas = strategy.num_replicas_in_sync
    if replicas > 1 and replicas > (here := len(strategy.extended.worker_devices)):
        raise UnsupportedError(
            f"LegacyModel is made under a {type(strategy).__name__} of {replicas} replicas, "
            f"{here} of them in this process: its variables are those of one process.\n"
            "  Train in several processes with Estimator: RunConfig(train_distribute="
            "tf.distribute.MultiWorkerMirroredStrategy()), or\n"
            "  take one process with all devices of its machine: tf.distribute.MirroredStrategy()."
        )
