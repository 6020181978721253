"""What an Estimator refuses of its arguments, before it calls anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import tensorflow as tf

from estimator2strategy.record.functions import argument_names, location

tf1 = tf.compat.v1
Hook: TypeAlias = tf1.train.SessionRunHook

_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "config", "self"}


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


def checked_execution(execution: str) -> str:
    """`execution`, if there is such a one.

    Raises:
        ValueError: There is not.
    """
    if execution not in ("loop", "device_loop", "auto"):
        raise ValueError(
            f"execution must be 'loop', 'device_loop' or 'auto', but provided {execution!r}."
        )
    return execution


def checked_jit_compile(jit_compile: bool | str, execution: str) -> bool | Literal["auto"]:
    """`jit_compile`, if it goes with `execution`.

    Raises:
        ValueError: It does not.
    """
    if jit_compile not in (True, False, "auto"):
        raise ValueError(
            f"jit_compile must be True, False or 'auto', but provided {jit_compile!r}."
        )
    if jit_compile and execution == "device_loop":
        raise ValueError("execution='device_loop' is compiled as a whole: leave out jit_compile=.")
    return "auto" if jit_compile == "auto" else bool(jit_compile)


def checked_shards(shards: int | None) -> int | None:
    """`shards`, if it is None or a number of files.

    Raises:
        ValueError: It is not.
    """
    if shards is not None and not (isinstance(shards, int) and shards >= 1):
        raise ValueError(f"checkpoint_shards must be None or >= 1, but provided {shards!r}.")
    return shards
