"""The runtime that `e2s run --runtime` asks for, and the precision; both without TensorFlow.

E2S_RUNTIME and E2S_PRECISION in the environment do the same: they tell the processes that a program
starts.
"""

from __future__ import annotations

import enum
import os
from typing import TypeVar

from estimator2strategy.engine.replay.xla.precision import Precision

RUNTIME_VARIABLE = "E2S_RUNTIME"
PRECISION_VARIABLE = "E2S_PRECISION"
OLDEST_JAX = (0, 10)
E = TypeVar("E", bound=enum.Enum)


class Runtime(enum.Enum):
    """The runtime that executes the steps of a model.

    TENSORFLOW: TensorFlow: CPUs, GPUs, and TPUs that it knows.
    JAX: JAX, on the devices of its default platform: CPUs, GPUs, TPUs of today.
    AUTO: JAX where it has a GPU or a TPU, and XLA takes the steps; TensorFlow otherwise.
    """

    TENSORFLOW = "tensorflow"
    JAX = "jax"
    AUTO = "auto"


def requested_runtime() -> Runtime:
    """The runtime that the environment asks for.

    Raises:
        ValueError: There is no such runtime.
    """
    return _requested(RUNTIME_VARIABLE, Runtime.TENSORFLOW)


def requested_precision() -> Precision:
    """The precision that the environment asks for.

    Raises:
        ValueError: There is no such precision.
    """
    return _requested(PRECISION_VARIABLE, Precision.DEFAULT)


def _requested(variable: str, default: E) -> E:
    name = os.environ.get(variable) or default.value
    known = {member.value: member for member in type(default)}
    if name not in known:
        raise ValueError(f"{variable} must be one of {', '.join(known)}, got {name!r}.")
    return known[name]
