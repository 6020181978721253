"""`TrainSpec` and `EvalSpec`: what `train_and_evaluate` does with an Estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

import tensorflow as tf

from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.contract_rules import RULES
from estimator2strategy.estimator.exporter import Exporter

tf1 = tf.compat.v1


class _TrainFields(NamedTuple):
    input_fn: Callable[..., Any]
    max_steps: int | None
    hooks: tuple[tf1.train.SessionRunHook, ...]
    saving_listeners: tuple[tf1.train.CheckpointSaverListener, ...]


class TrainSpec(_TrainFields):
    """The training of a `train_and_evaluate`.

    Args:
        input_fn: As for `Estimator.train`.
        max_steps: Global step at which training is done; None: when the input ends.
        hooks: Called around each step, in every process that trains.
        saving_listeners: Called before and after each checkpoint.

    Raises:
        TypeError: An argument of another type.
        ValueError: `max_steps` is not positive.

    Source: `tf.estimator.TrainSpec`, tensorflow_estimator 2.15.
    """

    @checked(RULES)
    def __new__(
        cls,
        input_fn: Callable[..., Any],
        max_steps: int | None = None,
        hooks: Iterable[tf1.train.SessionRunHook] | None = None,
        saving_listeners: Iterable[tf1.train.CheckpointSaverListener] | None = None,
    ) -> TrainSpec:
        _check_input_fn(input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return super().__new__(
            cls, input_fn, max_steps, all_hooks(hooks), _checked_listeners(saving_listeners)
        )


class _EvalFields(NamedTuple):
    input_fn: Callable[..., Any]
    steps: int | None
    name: str | None
    hooks: tuple[tf1.train.SessionRunHook, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalFields):
    """The evaluations and exports of a `train_and_evaluate`.

    Args:
        input_fn: As for `Estimator.evaluate`.
        steps: Batches of each evaluation; None: until the input ends.
        name: Results go to `eval_<name>`.
        hooks: Called around each batch.
        exporters: One Exporter, or several of different names; called after each evaluation.
        start_delay_secs: Seconds that an evaluator process waits before its first evaluation.
        throttle_secs: Least number of seconds between the starts of two evaluations.

    Raises:
        TypeError: An argument of another type.
        ValueError: A number out of its range, exporters without a name or with the same.

    Source: `tf.estimator.EvalSpec`, tensorflow_estimator 2.15.
    """

    @checked(RULES)
    def __new__(
        cls,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Iterable[tf1.train.SessionRunHook] | None = None,
        exporters: Exporter | Iterable[Exporter] | None = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        _check_input_fn(input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        hooks = all_hooks(hooks)
        exporters = _checked_exporters(exporters)
        if start_delay_secs < 0:
            raise ValueError(f"Must specify start_delay_secs >= 0, given: {start_delay_secs}")
        if throttle_secs < 0:
            raise ValueError(f"Must specify throttle_secs >= 0, given: {throttle_secs}")
        return super().__new__(
            cls, input_fn, steps, name, hooks, exporters, start_delay_secs, throttle_secs
        )


def _check_input_fn(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"`input_fn` must be callable, given: {input_fn}")


def all_hooks(hooks: Any) -> tuple[tf1.train.SessionRunHook, ...]:
    """`hooks`, or none; TypeError if one is no SessionRunHook."""
    hooks = tuple(hooks or ())
    for hook in hooks:
        if not isinstance(hook, tf1.train.SessionRunHook):
            raise TypeError(f"All hooks must be `SessionRunHook` instances, given: {hook}")
    return cast(tuple[tf1.train.SessionRunHook, ...], hooks)


def _checked_listeners(listeners: Any) -> tuple[tf1.train.CheckpointSaverListener, ...]:
    listeners = tuple(listeners or ())
    for listener in listeners:
        if not isinstance(listener, tf1.train.CheckpointSaverListener):
            raise TypeError(
                "All saving_listeners must be `CheckpointSaverListener` instances, "
                f"given: {listener}"
            )
    return cast(tuple[tf1.train.CheckpointSaverListener, ...], listeners)


def _checked_exporters(exporters: Any) -> tuple[Exporter, ...]:
    if not exporters:
        return ()
    several = [exporters] if isinstance(exporters, Exporter) else exporters
    try:
        several = tuple(several)
    except TypeError:
        several = (None,)
    if not all(isinstance(exporter, Exporter) for exporter in several):
        raise TypeError(
            "`exporters` must be an Exporter, an iterable of Exporter, or `None`, "
            f"found {exporters}."
        )
    names = [exporter.name for exporter in several]
    for name in names:
        if not name:
            raise ValueError(
                "In exporters, An Exporter cannot have a name that is `None` or empty. "
                f"All exporter names: {names}"
            )
        if not isinstance(name, str):
            raise ValueError(f"An Exporter must have a string name. Given: {type(name)}")
    if len(set(names)) < len(names):
        raise ValueError(
            "`exporters` must have unique names. Such a name cannot be `None`. "
            f"All exporter names: {names}"
        )
    return several
