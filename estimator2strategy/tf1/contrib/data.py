"""`tf.contrib.data` of TF 1.2 to 1.15: the names and arguments that `tf.data` does not have.

`map(..., num_threads=4, output_buffer_size=100)`, of TF 1.2 to 1.5, stands in most input pipelines
of 2017. All else lives on in `tf.data`.

Refused: `LMDBDataset`, `CheckpointInputPipelineHook`, and a few functions for which `tf.data` has
another.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("data", globals())


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


def _class_of_datasets() -> type:
    """The class of what the methods of a dataset return: TensorFlow makes it from any dataset."""
    with tf.Graph().as_default():
        return type(_v1.data.Dataset.range(0))


class Dataset(_class_of_datasets()):  # type: ignore[misc]
    """A dataset of `tf.data` whose `map` takes `num_threads` and `output_buffer_size`.

    Args:
        dataset: The dataset of `tf.data`.

    Source: `tf.contrib.data.Dataset`, TF 1.4.
    """

    def map(
        self,
        map_func: Callable[..., Any],
        num_threads: Any = None,
        output_buffer_size: Any = None,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """The result of `map_func` for each element.

        Args:
            map_func: Takes an element, its components one by one.
            num_threads: The earlier name of `num_parallel_calls`.
            output_buffer_size: Number of results that are made ahead.
            num_parallel_calls: Number of elements that are worked on at a time.
        """
        calls = num_parallel_calls if num_threads is None else num_threads
        made = super().map(map_func, num_parallel_calls=calls)
        return Dataset(made if output_buffer_size is None else made.prefetch(output_buffer_size))

    def dense_to_sparse_batch(self, batch_size: Any, row_shape: Any) -> Dataset:
        """Batches of elements of different shapes, each a SparseTensor."""
        return cast(
            Dataset, self.apply(_v1.data.experimental.dense_to_sparse_batch(batch_size, row_shape))
        )


def _of_1_4(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method`, with a Dataset of this module for each dataset that it returns."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = method(*args, **kwargs)
        return Dataset(made) if isinstance(made, _v1.data.Dataset) else made

    return call


def _methods_return_it() -> None:
    own = vars(Dataset)
    for name, method in inspect.getmembers(_v1.data.Dataset, inspect.isroutine):
        if name.startswith("_") or name in own or name in _OF_NO_DATASET:
            continue
        is_static = isinstance(inspect.getattr_static(_v1.data.Dataset, name), staticmethod)
        setattr(Dataset, name, staticmethod(_of_1_4(method)) if is_static else _of_1_4(method))


_OF_NO_DATASET = ("make_one_shot_iterator", "make_initializable_iterator", "options")
_methods_return_it()


class TextLineDataset(Dataset):
    """`tf.data.TextLineDataset`; it takes the same arguments."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(_v1.data.TextLineDataset(*args, **kwargs))


class TFRecordDataset(Dataset):
    """`tf.data.TFRecordDataset`; it takes the same arguments."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(_v1.data.TFRecordDataset(*args, **kwargs))


class FixedLengthRecordDataset(Dataset):
    """`tf.data.FixedLengthRecordDataset`; it takes the same arguments."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(_v1.data.FixedLengthRecordDataset(*args, **kwargs))
