"""`TPUConfig.input_partition_dims`: splits each input among the cores of one replica."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.errors import UnsupportedError

# For each axis of a tensor, into how many parts it is cut; None: every core gets the whole.
PartitionDims: TypeAlias = "tuple[int, ...] | None"


def partition_dims(
    inputs: Sequence[Any], dims: Sequence[Any] | None, num_cores: int
) -> tuple[PartitionDims, ...]:
    """The partition of each tensor of a replica's (features, labels), in the order of tf.nest.

    Args:
        inputs: (features, labels) or (features,), nested as input_fn returned them.
        dims: `TPUConfig.input_partition_dims`.
        num_cores: `TPUConfig.num_cores_per_replica`.

    Raises:
        ValueError: `dims` is not nested as `inputs` are, or does not fit a tensor.

    Source: `InputsStructureRecorder`, tensorflow_estimator 2.15 tpu_estimator.py, and
    `_PartitionedInfeedQueue`, tensorflow/python/tpu/tpu_feed.py.
    """
    if dims is None:
        return tuple(None for _ in tf.nest.flatten(list(inputs), expand_composites=True))
    pairs: list[tuple[tf.Tensor, Any]] = []
    for element, tensors in enumerate(inputs):
        given = dims[element] if element < len(dims) else None
        if element and given is None:
            pairs += [(tensor, None) for tensor in tf.nest.flatten(tensors)]
        else:
            _check_keys(tensors, given, element)
            pairs += _aligned(tensors, given, element)
    partitions: list[PartitionDims] = []
    for tensor, parts in pairs:
        if isinstance(tensor, tf.SparseTensor) and parts is None:
            partitions += [None] * 3
        else:
            partitions.append(None if parts is None else _checked(tensor, parts, num_cores))
    return tuple(partitions)


def check_parts_of_one_size(
    inputs: Sequence[Any], partitions: Sequence[PartitionDims], is_tpu: bool
) -> None:
    """Raises UnsupportedError if a TPU is to cut an axis into parts of different sizes.

    Emulated cores cut nothing, so there it is a warning.

    Args:
        inputs: (features, labels) or (features,), nested as input_fn returned them.
        partitions: Of each of their tensors.
    """
    flat = tf.nest.flatten(list(inputs), expand_composites=True)
    for tensor, dims in zip(flat, partitions, strict=True):
        for axis, parts in enumerate(dims or ()):
            if tensor.shape[axis] % parts:
                message = (
                    f"TPUConfig.input_partition_dims cuts axis {axis} of a tensor of shape "
                    f"{tensor.shape} into {parts} parts, which have different sizes.\n"
                    "  TPUStrategy.experimental_split_to_logical_devices wants parts of one size."
                    f"\n  For a TPU, pad the axis in input_fn to a multiple of {parts}."
                )
                if is_tpu:
                    raise UnsupportedError(message)
                tf.compat.v1.logging.warn(message)


def _check_keys(tensors: Any, dims: Any, element: int) -> None:
    part = ("feature", "label")[element]
    expected, given = (sorted(x) if isinstance(x, dict) else [] for x in (tensors, dims))
    if expected != given:
        raise ValueError(
            f"TPUConfig.input_partition_dims[{element}] mismatched {part} keys. Expected "
            f"{expected}, got {given}"
        )


def _aligned(tensors: Any, dims: Any, element: int) -> Iterator[tuple[tf.Tensor, Any]]:
    """(tensor, its partition), in the order of tf.nest."""
    if isinstance(tensors, dict):
        if not isinstance(dims, dict) or sorted(dims) != sorted(tensors):
            raise _mismatch(element, tensors, dims)
        for key in sorted(tensors):
            yield from _aligned(tensors[key], dims[key], element)
    elif isinstance(tensors, tuple):
        if not isinstance(dims, (tuple, list)) or len(dims) != len(tensors):
            raise _mismatch(element, tensors, dims)
        for tensor, of_tensor in zip(tensors, dims, strict=True):
            yield from _aligned(tensor, of_tensor, element)
    elif dims is not None and not isinstance(dims, (tuple, list)):
        raise _mismatch(element, tensors, dims)
    else:
        yield tensors, dims


def _mismatch(element: int, tensors: Any, dims: Any) -> ValueError:
    part = ("features", "labels")[element]
    return ValueError(
        f"TPUConfig.input_partition_dims[{element}] mismatched the structure of {part}. "
        f"input_partition_dims[{element}]: {dims}, {part} {tensors}"
    )


def _checked(tensor: tf.Tensor, dims: Sequence[int], num_cores: int) -> PartitionDims:
    if any(dim < 1 for dim in dims):
        raise ValueError(f"All input partition dims must be >= 1. Got {dims} for {tensor}")
    if math.prod(dims) != num_cores:
        raise ValueError(
            "The product of each input partition dim should equal to num_cores_per_replica. "
            f"(dim = {dims}, num_cores_per_replica = {num_cores})"
        )
    if len(dims) != tensor.shape.rank:
        raise ValueError(
            "Input partition dims must have the same number of dimensions as the `Tensor` to be "
            f"partitioned. (tensor.shape = {tensor.shape}, input_partition_dims = {dims})"
        )
    return tuple(dims)
