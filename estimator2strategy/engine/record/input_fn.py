"""Calls input_fn and hands on what it returned: the very objects, in the recorded graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.plan.queues import runners_of
from estimator2strategy.engine.record.input_files import warn_of_input_files
from estimator2strategy.engine.user_code import (
    argument_names,
    location,
    needed_arguments,
    user_line,
)
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.errors import QueueRunnerError


class DatasetInitializerHook(tf.compat.v1.train.SessionRunHook):
    """Starts a dataset's iterator as soon as there is a session."""

    def __init__(self, iterator: tf.compat.v1.data.Iterator):
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: tf.compat.v1.Session, coord: Any) -> None:
        del coord
        session.run(self._initializer)


class Inputs(NamedTuple):
    """The result of input_fn, in the form that model_fn gets."""

    features: Any
    labels: Any
    hooks: tuple[tf.compat.v1.train.SessionRunHook, ...]


def call_input_fn(input_fn: Callable[..., Any], available: dict[str, Any]) -> Any:
    """Calls `input_fn` with those of the `available` arguments that it declares."""
    names = argument_names(input_fn)
    _check_arguments(input_fn, available)
    with tf.compat.v1.device("/cpu:0"):
        result = input_fn(**{name: value for name, value in available.items() if name in names})
    warn_of_input_files(tf.compat.v1.get_default_graph())
    return result


def _check_arguments(input_fn: Callable[..., Any], available: Mapping[str, Any]) -> None:
    """Raises TypeError if input_fn needs arguments that nobody passes."""
    missing = [name for name in needed_arguments(input_fn) if name not in available]
    if missing:
        takes = ", ".join(name for name in available if name != "input_context")
        raise wrong_argument(
            f"input_fn {location(input_fn)} has arguments that nobody passes",
            missing,
            f"It may take {takes}; bind others: functools.partial(input_fn, {missing[0]}=...).",
            TypeError,
        )


def refuse_queue_runners(input_fn: Callable[..., Any]) -> None:
    """Raises QueueRunnerError if input_fn reads from queues, for cores and replicas."""
    runners = runners_of(tf.compat.v1.get_default_graph())
    if runners:
        raise QueueRunnerError(
            f"input_fn {location(input_fn)} reads from a queue runner, made at "
            f"{user_line(runners[0].queue.queue_ref.op.traceback)}\n"
            "  Input pipeline contains one or more QueueRunners.\n"
            "  Cores and replicas take their batches from a tf.data.Dataset, as they did in the "
            "original; queues are for an Estimator on one device.\n"
            "  Return a Dataset instead, for example tf.data.TFRecordDataset(files)"
            ".shuffle(1000).repeat().batch(n); see migration_guide/inputs.md."
        )


def iterate(result: Any) -> tuple[Any, tuple[tf.compat.v1.train.SessionRunHook, ...]]:
    """The next element of a Dataset, and the hook that starts it; anything else as it is."""
    if not isinstance(result, tf.data.Dataset):
        return result, ()
    iterator = tf.compat.v1.data.make_initializable_iterator(result)
    hook = DatasetInitializerHook(iterator)
    return iterator.get_next(), (hook,)


def features_and_labels(result: Any) -> Inputs:
    """Splits what input_fn returned, as Estimator did.

    Raises:
        ValueError: A tuple or list that is not (features, labels).
    """
    result, hooks = iterate(result)
    if isinstance(result, (list, tuple)):
        if len(result) != 2:
            raise ValueError(
                "input_fn should return (features, labels) as a len 2 tuple, "
                f"but returned {len(result)} values."
            )
        return Inputs(result[0], result[1], hooks)
    return Inputs(result, None, hooks)


def ends(graph: tf.Graph) -> bool:
    """True if anything in the graph could run out of data. Constants never do."""
    return any(
        "Iterator" in op.type or "Queue" in op.type or "Reader" in op.type
        for op in graph.get_operations()
    )
