"""A streaming metric: sums over batches, and a function of those sums.

Every function of `tf.compat.v1.metrics` has this form, so each is a `StreamingMetric`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import tensorflow as tf

Sums = Mapping[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class StreamingMetric:
    """A streaming metric without its variables.

    Attributes:
        state: Name of each sum to its shape and dtype; all start at zero.
        batch: `batch(**tensors)`: what one batch adds to each sum, by name.
        result: `result(sums)`: the metric's value.
    """

    state: Mapping[str, tuple[tuple[int, ...], str]]
    batch: Callable[..., Sums]
    result: Callable[[Sums], tf.Tensor]
