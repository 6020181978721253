"""Cross entropies that refuse arguments by position, as in TF 1.15.

Their first argument was `logits` in TF 0.x, and is `labels` in today's TensorFlow. TF 1.15 took
neither by position. Today's would train such a program on another loss, and say nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.wrong_argument import wrong_argument

nn = tf.compat.v1.nn


def _by_name(cross_entropy: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    name = cross_entropy.__name__

    @functools.wraps(cross_entropy)
    def call(*args: Any, **kwargs: Any) -> tf.Tensor:
        if args and args[0] is not None:
            raise wrong_argument(
                f"Only call `{name}` with named arguments (labels=..., logits=..., ...)",
                args[0],
                "Name both. A program of TF 0.x gave the logits first.",
                ValueError,
            )
        return cross_entropy(*args[1:], **kwargs)

    # For `inspect.getfullargspec`.
    call.__signature__ = inspect.signature(cross_entropy)  # type: ignore[attr-defined]
    return call


sigmoid_cross_entropy_with_logits = _by_name(nn.sigmoid_cross_entropy_with_logits)
softmax_cross_entropy_with_logits = _by_name(nn.softmax_cross_entropy_with_logits)
sparse_softmax_cross_entropy_with_logits = _by_name(nn.sparse_softmax_cross_entropy_with_logits)
