"""The way back to TensorFlow's runtime, for a program that was to run under JAX where it can.

    @in_chosen_runtime
    def evaluate(self, input_fn): ...

With `Runtime.AUTO` a method is called again, under TensorFlow, if JAX refuses the program before
any step has run.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tensorflow as tf

from estimator2strategy.engine.replay.xla.target import NotUnderJaxError
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.runtime.requested_runtime import Runtime
from estimator2strategy.engine.runtime.training_options import runtime_of

F = TypeVar("F", bound=Callable[..., Any])


def in_chosen_runtime(method: F) -> F:
    """A method of Estimator that runs steps, which may change the runtime before the first one."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except NotUnderJaxError as error:
            _back_to_tensorflow(self, error)
        return method(self, *args, **kwargs)

    @functools.wraps(method)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        try:
            yield from method(self, *args, **kwargs)
            return
        except NotUnderJaxError as error:
            _back_to_tensorflow(self, error)
        yield from method(self, *args, **kwargs)

    chosen: Any = generate if inspect.isgeneratorfunction(method) else call
    return chosen


def _back_to_tensorflow(estimator: Any, error: NotUnderJaxError) -> None:
    """Makes TensorFlow run the steps of an Estimator from now on; raises unless it may."""
    options = estimator._training_options
    if runtime_of(options) is not Runtime.AUTO:
        raise error
    reason = " ".join(str(error).split())
    tf.compat.v1.logging.info("TensorFlow runs the steps, and not JAX. %s", reason)
    estimator._training_options = dataclasses.replace(options, runtime=Runtime.TENSORFLOW)
    estimator._replays = ReplayCache()
