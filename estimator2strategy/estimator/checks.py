"""The checks of an Estimator's arguments, before it calls anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.xla.target import NotUnderJaxError
from estimator2strategy.engine.runtime.checkpoints import is_there
from estimator2strategy.engine.runtime.lookahead import IterationsPerLoop, LoopUnit
from estimator2strategy.engine.runtime.requested_job import COORDINATOR_VARIABLE, requested_job
from estimator2strategy.engine.runtime.training_options import TrainingOptions, uses_jax
from estimator2strategy.engine.spelling import did_you_mean
from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.tf_config import TaskType

tf1 = tf.compat.v1
Hook: TypeAlias = tf1.train.SessionRunHook

_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "config", "self"}

# Members that subclasses may override: those of the original, and a method that it had not.
_OVERRIDABLE = frozenset({"model_fn", "latest_checkpoint", "keras_metrics"})


def verify_model_fn_args(model_fn: Callable[..., Any], params: Any) -> None:
    """Checks model_fn as `check_model_fn_args` does; warns if params may have been forgotten."""
    check_model_fn_args(model_fn, params)
    if params is None and "params" in argument_names(model_fn):
        tf1.logging.warn(
            f"Estimator's model_fn {location(model_fn)} includes params argument, but params are "
            "not passed to Estimator."
        )


def check_model_fn_args(model_fn: Callable[..., Any], params: Any) -> None:
    """Checks that model_fn can be called as Estimator calls it.

    Raises:
        ValueError: It lacks `features` or a needed `params`, or has arguments nobody passes.
    """
    names = set(argument_names(model_fn))
    where = location(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn {where} must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn {where} does not include params argument, but params ({params}) is passed "
            "to Estimator."
        )
    unknown = sorted(names - _MODEL_FN_ARGUMENTS)
    if unknown:
        raise ValueError(f"model_fn {where} has following not expected args: {unknown}")


def check_steps(steps: int | None, max_steps: int | None) -> None:
    """Raises ValueError if not at most one is given, and that is positive."""
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    if steps is not None and steps <= 0:
        raise ValueError(f"Must specify steps > 0, given: {steps}")
    if max_steps is not None and max_steps <= 0:
        raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")


def check_trains(config: RunConfig) -> None:
    """Raises ValueError for a task of a cluster that never trains."""
    if config.task_type in (TaskType.EVALUATOR, TaskType.PS):
        raise ValueError(
            "Train has been called wrong configuration. Please use "
            "tf.estimator.train_and_evaluate which calls proper API according to given "
            f"configuration. Current configuration: {config}."
        )


def check_not_overridden(subclass: type, base: type) -> None:
    """Raises ValueError if a subclass of a program has public members of `base` anew.

    As in the original only the class itself is looked at, none between it and `base`, and none that
    is called as the original's own.

    Source: `_assert_members_are_not_overridden`, tensorflow_estimator 2.15 estimator.py.
    """
    if _is_ours(subclass) or subclass.__name__ == "TPUEstimator":
        return
    own = {name for name in dir(base) if not name.startswith("_")} - _OVERRIDABLE
    overridden = own & vars(subclass).keys()
    if overridden:
        raise wrong_argument(
            f"Subclasses of {base.__name__} cannot override members of {base.__name__}. "
            f"{subclass.__name__} does override {sorted(overridden)}",
            subclass,
            "Give these methods names of their own, or put what they do into model_fn and hooks.",
        )


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("estimator2strategy.")


def checked_predictions(predictions: Any, model_fn: Callable[..., Any]) -> Any:
    """The predictions of a spec; raises ValueError for an empty dict, which has no batch."""
    if isinstance(predictions, dict) and not predictions:
        raise wrong_argument(
            f"predictions of the EstimatorSpec that {location(model_fn)} returned for predict are "
            "an empty dict: there is nothing to yield",
            predictions,
            "Pass EstimatorSpec(mode, predictions=...) a tensor, or a dict from names to tensors.",
        )
    return predictions


def checked_hooks(hooks: Sequence[Hook] | None) -> list[Hook]:
    hooks = list(hooks or [])  # a generator goes once
    for hook in hooks:
        if not isinstance(hook, tf1.train.SessionRunHook):
            raise TypeError(f"Hooks must be a SessionRunHook, given: {hook}")
    return hooks


def checked_listeners(listeners: Any) -> list[tf1.train.CheckpointSaverListener]:
    listeners = list(listeners or [])
    for listener in listeners:
        if not isinstance(listener, tf1.train.CheckpointSaverListener):
            raise TypeError(
                f"saving_listeners must be a list of CheckpointSaverListener, given: {listener}"
            )
    return cast(list[tf1.train.CheckpointSaverListener], listeners)


def checked_options(options: TrainingOptions | None) -> TrainingOptions:
    if not isinstance(options, TrainingOptions | None):
        raise TypeError(f"options must be a TrainingOptions, given: {options!r}")
    return options or TrainingOptions()


def checked_path(checkpoint_path: Any) -> str | None:
    """The path of a checkpoint as a string; None if none was given.

    Raises:
        ValueError: There is no checkpoint of that path.
    """
    if not checkpoint_path:
        return None
    path = os.fsdecode(checkpoint_path)
    if not is_there(path) or path.endswith((".index", ".meta")):
        raise wrong_argument(
            "checkpoint_path: The passed save_path is not a valid checkpoint",
            path,
            "Pass the path without the ending of its files, as tf.train.latest_checkpoint(folder) "
            "returns it.",
        )
    return path


def no_variable(name: Any, names: Sequence[str]) -> tf.errors.NotFoundError:
    """The error for the name of a variable that a checkpoint has not."""
    return tf.errors.NotFoundError(
        None,
        None,
        str(
            wrong_argument(
                "name: Key not found in checkpoint",
                name,
                did_you_mean(name, names, "Pass one of get_variable_names()."),
            )
        ),
    )


def check_job_of_jax() -> None:
    """Raises UnsupportedError if the options of a job are given, and JAX does not run the steps."""
    if os.environ.get(COORDINATOR_VARIABLE):
        raise UnsupportedError(
            f"{COORDINATOR_VARIABLE} (--coordinator) is for the runtime of JAX, and TensorFlow "
            "runs this training: add --runtime=jax, or leave it out."
        )


def check_cores_of_several_hosts(mode: str) -> None:
    """Raises UnsupportedError if each process of a job would train a model of its own."""
    job = requested_job()
    if job is not None and mode == ModeKeys.TRAIN:
        raise UnsupportedError(
            f"{job.count} processes run this program under JAX, and this training uses one device: "
            "each would train a model of its own.\n  Several hosts train a TPUEstimator with "
            "use_tpu=True, whose cores are all their devices, and no TPUConfig.num_shards=1. See "
            "migration_guide/devices.md."
        )


def check_blocks_of_several_hosts(iterations: IterationsPerLoop) -> None:
    """Raises UnsupportedError if the blocks of a job's processes would have different steps."""
    if requested_job() is not None and iterations.unit is LoopUnit.SECONDS:
        raise UnsupportedError(
            "TPUConfig.iterations_per_loop is a time, in which each process of a job would run a "
            "number of steps of its own: give a number of steps."
        )


def check_no_evaluation_between(options: TrainingOptions) -> None:
    """Raises UnsupportedError if the chief of a job would evaluate while the others train."""
    if uses_jax(options) and requested_job() is not None:
        raise UnsupportedError(
            "train_and_evaluate would evaluate between steps of a training of several processes, "
            "which JAX runs, in one of them.\n  Call train and then evaluate, in all of them, or "
            "give TF_CONFIG a `chief`, workers and an `evaluator`. See migration_guide/devices.md."
        )


def check_no_strategy_under_jax(strategy: Any) -> None:
    """Raises NotUnderJaxError if a program of JAX's runtime asks for a strategy of TensorFlow's."""
    if strategy is not None:
        raise NotUnderJaxError(
            f"Under the runtime of JAX there is no {type(strategy).__name__}: leave out "
            "train_distribute=, eval_distribute= and strategy=. A TPUEstimator with use_tpu=True "
            "trains on all devices of JAX."
        )
