"""A replica's part of a batch, as Keras hands it to a step: its size, its features and labels."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


def uneven_size(x: Any, strategy: tf.distribute.Strategy) -> tf.Tensor | None:
    """The size of a replica's part of the batch, where it may be empty; else None."""
    first = tf.nest.flatten(x, expand_composites=True)[0]
    fixed = not first.shape.rank or first.shape[0] is not None
    return None if fixed or strategy.num_replicas_in_sync == 1 else tf.shape(first)[0]


def of_fixed_size(data: Any, size: int | None) -> Any:
    """A replica's part of a batch, with the size that it has always.

    Raises:
        ValueError: It has none: a TPU compiles for one.
    """

    def fixed(part: tf.Tensor) -> tf.Tensor:
        if size and part.shape.rank and part.shape[0] is None:
            part = tf.ensure_shape(part, [size, *part.shape[1:]])
        if not part.shape.is_fully_defined():
            raise ValueError(
                f"A batch has the shape {part.shape} under a TPUStrategy, where all sizes must be "
                "known. Pass a Dataset that was batched with drop_remainder=True."
            )
        return part

    return tf.nest.map_structure(fixed, data, expand_composites=True)


def assert_some(size: tf.Tensor) -> tf.Operation:
    """An op that fails where a replica has nothing to train on."""
    return tf.debugging.Assert(
        size > 0,
        [
            "The last batch has fewer examples than there are replicas, and one of them has "
            "nothing to train on. Batch with drop_remainder=True."
        ],
    )


def after(operation: tf.Operation, x: Any) -> Any:
    """The batch, once an op has run."""
    with tf.control_dependencies([operation]):
        return tf.nest.map_structure(tf.identity, x, expand_composites=True)


def unpacked(data: Any) -> tuple[Any, Any]:
    """(features, labels) of what Keras hands to a step."""
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    if sample_weight is not None:
        raise ValueError(
            "model_fn takes features and labels, and no sample_weight: put weights among the "
            "features."
        )
    return x, y
