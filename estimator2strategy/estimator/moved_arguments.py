"""Keywords that a constructor had once: using one is an error that names its replacement."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from estimator2strategy.engine.runtime.training_options import TrainingOptions
from estimator2strategy.engine.wrong_argument import wrong_argument

# Estimator and TPUEstimator had these one by one.
MOVED_TO_OPTIONS = {
    field.name: f"pass options=TrainingOptions({field.name}=...)"
    for field in dataclasses.fields(TrainingOptions)
} | {"execution": "leave it out; options=TrainingOptions(jit_compile=True) compiles the steps"}

P = ParamSpec("P")
T = TypeVar("T")


def refuses_moved(replacements: Mapping[str, str]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Makes a decorator of functions that no longer take some keywords.

    Args:
        replacements: Keyword that is gone -> what to do in its place, as an imperative.

    Returns:
        The decorator. The function keeps its signature; a keyword of `replacements` is a TypeError.
    """

    def decorator(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            for name in kwargs.keys() & replacements.keys():
                raise wrong_argument(
                    f"{function.__qualname__}() has no argument {name!r} any more",
                    kwargs[name],
                    f"{replacements[name][0].upper()}{replacements[name][1:]}.",
                    TypeError,
                )
            return function(*args, **kwargs)

        # `getfullargspec`, by which programs look at constructors, reads this and not __wrapped__.
        checked.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return checked

    return decorator
