"""Ends an iterator: its threads, its generators, what it holds, even if its handle is still held.

TensorFlow's thread that tunes an input (`AUTOTUNE`) sleeps between its looks at it, twice as long
each time, and is told to end in the moment before it could see that it should. So whoever frees an
iterator sometimes waits until it wakes, as a Session does. To free it in a thread of ours, while
the program goes on, was tried: TensorFlow crashed, once in a run of all tests.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph, element_of

# Types of which there are tensors without an element.
_ORDINARY = frozenset(
    {
        *(tf.bool, tf.string, tf.bfloat16, tf.float16, tf.float32, tf.float64),
        *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
    }
)


def end_iterator(recorded: RecordedGraph, node: str, iterator: tf.Tensor) -> None:
    """Ends the iterator of a recorded node. Must be called in the `modern_world`."""
    empty = _empty_dataset(**element_of(recorded[node]))
    tf.raw_ops.MakeIterator(dataset=empty, iterator=iterator)


def _empty_dataset(
    output_types: Sequence[tf.DType], output_shapes: Sequence[tf.TensorShape]
) -> tf.Tensor:
    """A dataset (variant) without an element, which says what elements there would be."""
    element = {"output_types": output_types, "output_shapes": output_shapes}
    if not _ORDINARY.issuperset(output_types):
        return tf.raw_ops.FlatMapDataset(
            input_dataset=_empty_range(tf.constant(0, tf.int64)),
            other_arguments=[],
            f=_empty_range_of_each(),
            **element,
        )
    # Slices of nothing take a third of the time: no function is made ready, and of numpy's values
    # not even an op runs.
    components = [
        tf.constant(np.empty(_no_elements(shape), dtype.as_numpy_dtype), dtype)
        for dtype, shape in zip(output_types, output_shapes, strict=True)
    ]
    return tf.raw_ops.TensorSliceDataset(components=components, output_shapes=output_shapes)


def _no_elements(shape: tf.TensorShape) -> list[int]:
    return [0, *(size or 0 for size in shape.as_list())] if shape.rank else [0]


def _empty_range(bound: tf.Tensor) -> tf.Tensor:
    """A dataset (variant) without an element."""
    step = tf.constant(1, tf.int64)
    element = {"output_types": [tf.int64], "output_shapes": [tf.TensorShape([])]}
    return tf.raw_ops.RangeDataset(start=bound, stop=bound, step=step, **element)


@functools.cache
def _empty_range_of_each() -> Any:
    element = tf.TensorSpec([], tf.int64)
    return tf.function(_empty_range, autograph=False).get_concrete_function(element)
