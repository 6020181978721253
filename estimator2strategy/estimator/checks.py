"""The checks of an Estimator's arguments, before it calls anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine.runtime.training_options import TrainingOptions
from estimator2strategy.engine.user_code import argument_names, location

tf1 = tf.compat.v1
Hook: TypeAlias = tf1.train.SessionRunHook

_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "config", "self"}

# What subclasses may have of their own: what the original let them, and a method that it had not.
_OVERRIDABLE = frozenset({"model_fn", "latest_checkpoint", "keras_metrics"})


def verify_model_fn_args(model_fn: Callable, params: Any) -> None:
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
    if params is None and "params" in names:
        tf1.logging.warn(
            f"Estimator's model_fn {where} includes params argument, but params are not passed to "
            "Estimator."
        )
    unknown = sorted(names - _MODEL_FN_ARGUMENTS)
    if unknown:
        raise ValueError(f"model_fn {where} has following not expected args: {unknown}")


def check_not_overridden(subclass: type, base: type) -> None:
    """Raises ValueError if a subclass of a program has public members of `base` anew."""
    own = {name for name in dir(base) if not name.startswith("_")} - _OVERRIDABLE
    overridden = own & {
        name
        for cls in subclass.__mro__
        if issubclass(cls, base) and cls is not base and not _is_ours(cls)
        for name in vars(cls)
    }
    if overridden:
        raise ValueError(
            f"Subclasses of {base.__name__} cannot override members of {base.__name__}. "
            f"{subclass.__name__} does override {sorted(overridden)}"
        )


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("estimator2strategy.")


def checked_hooks(hooks: Sequence[Hook] | None) -> list[Hook]:
    for hook in hooks or []:
        if not isinstance(hook, tf1.train.SessionRunHook):
            raise TypeError(f"Hooks must be a SessionRunHook, given: {hook}")
    return list(hooks or [])


def checked_listeners(listeners) -> list[tf1.train.CheckpointSaverListener]:
    for listener in listeners or []:
        if not isinstance(listener, tf1.train.CheckpointSaverListener):
            raise TypeError(
                f"saving_listeners must be a list of CheckpointSaverListener, given: {listener}"
            )
    return list(listeners or [])


def checked_options(options: TrainingOptions | None) -> TrainingOptions:
    if not isinstance(options, TrainingOptions | None):
        raise TypeError(f"options must be a TrainingOptions, given: {options!r}")
    return options or TrainingOptions()
