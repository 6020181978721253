"""`tf.contrib.data` of TF 1.15: what is not in `tf.data.experimental`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

_v1 = tf.compat.v1


_Transformation = Callable[[Any], Any]


def batch_and_drop_remainder(batch_size: int | tf.Tensor) -> _Transformation:
    """`dataset.apply` function: batches of exactly `batch_size`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: int | tf.Tensor, padded_shapes: Any, padding_values: Any = None
) -> _Transformation:
    """`dataset.apply` function: padded batches of exactly `batch_size`."""
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(
    map_func: Callable[..., Any], cycle_length: int, block_length: int = 1
) -> _Transformation:
    """`dataset.apply` function: an interleave that does not wait for a slow source."""
    return cast(
        _Transformation,
        _v1.data.experimental.parallel_interleave(
            map_func, cycle_length, block_length, sloppy=True
        ),
    )


def sliding_window_batch(
    window_size: int | tf.Tensor,
    stride: int | tf.Tensor | None = None,
    window_shift: int | tf.Tensor | None = None,
    window_stride: int | tf.Tensor = 1,
) -> _Transformation:
    """`dataset.apply` function: batches that overlap, without those that the end cuts short."""
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = next((given for given in (stride, window_shift) if given is not None), 1)

    def windows(dataset: Any) -> Any:
        is_tuple = isinstance(dataset.element_spec, tuple)

        def batched(*parts: Any) -> Any:
            one = parts if is_tuple else parts[0]
            rows = one if isinstance(one, tf.data.Dataset) else tf.data.Dataset.zip(one)
            return rows.batch(window_size)

        return dataset.window(window_size, shift, window_stride, drop_remainder=True).flat_map(
            batched
        )

    return windows
