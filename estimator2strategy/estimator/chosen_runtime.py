"""The way back to TensorFlow's runtime, for a program that was to run under JAX where it can.

    @in_chosen_runtime
    def evaluate(self, input_fn): ...

With `Runtime.AUTO` a method is called again, under TensorFlow, if JAX refuses the program before
any step has run.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import tensorflow as tf

from estimator2strategy.engine.replay.xla.target import NotUnderJaxError
from estimator2strategy.engine.runtime.requested_job import Runtime
from estimator2strategy.engine.runtime.training_options import runtime_of

F = TypeVar("F", bound=Callable[..., Any])


def in_chosen_runtime(method: F) -> F:
    """A method of Estimator that runs steps, which may change the runtime before the first one."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except NotUnderJaxError as error:
            _check_choice(self, error)
            self._back_to_tensorflow()
        return method(self, *args, **kwargs)

    @functools.wraps(method)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        try:
            yield from method(self, *args, **kwargs)
            return
        except NotUnderJaxError as error:
            _check_choice(self, error)
            self._back_to_tensorflow()
        yield from method(self, *args, **kwargs)

    chosen: Any = generate if inspect.isgeneratorfunction(method) else call
    return cast(F, chosen)


def _check_choice(estimator: Any, error: NotUnderJaxError) -> None:
    """Raises unless TensorFlow may run the steps of an Estimator from now on."""
    if runtime_of(estimator.e2s_parts.options) is not Runtime.AUTO:
        raise error
    reason = " ".join(str(error).split())
    tf.compat.v1.logging.info("TensorFlow runs the steps, and not JAX. %s", reason)
