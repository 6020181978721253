"""Decorators of Estimator's constructors and methods: keywords that are gone, the chosen runtime.

With `Runtime.AUTO` a method is called again, under TensorFlow, if JAX refuses the program before
any step has run.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

import tensorflow as tf

from estimator2strategy.engine.replay.xla.target import NotUnderJaxError
from estimator2strategy.engine.runtime.requested_job import Runtime
from estimator2strategy.engine.runtime.training_options import TrainingOptions, runtime_of
from estimator2strategy.engine.wrong_argument import wrong_argument

# Keywords that Estimator and TPUEstimator had one by one -> what to do in their place.
_MOVED = {
    field.name: f"Pass options=TrainingOptions({field.name}=...)."
    for field in dataclasses.fields(TrainingOptions)
} | {"execution": "Leave it out; options=TrainingOptions(jit_compile=True) compiles the steps."}

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def refuses_moved(function: Callable[P, T]) -> Callable[P, T]:
    """A constructor to which a keyword that moved to TrainingOptions is a TypeError."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs.keys() & _MOVED.keys():
            said = f"{function.__qualname__}() has no argument {name!r} any more"
            raise wrong_argument(said, kwargs[name], _MOVED[name], TypeError)
        return function(*args, **kwargs)

    # `getfullargspec`, by which programs look at constructors, reads this and not __wrapped__.
    checked.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return checked


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
