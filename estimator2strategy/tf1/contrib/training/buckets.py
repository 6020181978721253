"""Batches of `tf.contrib.training` whose examples are alike: of one bucket, such as a length.

Each bucket has a queue. A full batch of any bucket goes to a top queue, which the program reads.
Threads that the program starts, with its Session, fill them.

Source: `tf.contrib.training` bucket_ops.py, and `tf.train` input.py, TF 1.15.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import tensorflow as tf

_v1 = tf.compat.v1
_INT32 = tf.int32


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[tf.Tensor, Any]:
    """Batches of examples of the same bucket; two queue runners of the graph fill them.

    Args:
        tensors: One example: a list or dict of tensors or SparseTensors, of any shapes and dtypes.
        which_bucket: int32 scalar, from 0 to below `num_buckets`.
        batch_size: A number or an int32 scalar; or a list with one for each bucket.
        num_buckets: The number of buckets.
        num_threads: Threads that put examples into buckets.
        capacity: Batches in the top queue, and by default examples in each bucket.
        bucket_capacities: Examples in each bucket, `num_buckets` numbers.
        shapes: Shapes of the tensors; their static shapes by default.
        dynamic_pad: True if unknown sizes are padded to the largest of the batch, with 0 or "".
        allow_smaller_final_batch: True if the rest of each bucket is a batch, too, at the end.
        keep_input: bool scalar, False for examples that are left out.
        shared_name: A name by which sessions share the queues.
        name: Of the name scope.

    Returns:
        The bucket, int32 scalar; and the batch, with the structure of `tensors` and a first axis of
        examples. A list of one tensor comes back as that tensor.

    Raises:
        ValueError: A list has not `num_buckets` elements; there are no tensors; a shape is not
            known; or `keep_input` is no scalar.
    """
    sizes, capacities = _of_each(num_buckets, batch_size, bucket_capacities, capacity)
    is_free = allow_smaller_final_batch or isinstance(batch_size, (list, tuple))
    example = _listed(tensors)
    with _v1.name_scope(name, "bucket", example) as scope:
        stored, kept = _stored(example, keep_input, scope)
        make_queue = tf.queue.PaddingFIFOQueue if dynamic_pad else tf.queue.FIFOQueue
        layout = _Layout(sizes, capacities, capacity, make_queue, is_free, shared_name)
        queues = _queues(layout, stored, shapes)
        sort = _sorting(queues, which_bucket, stored, kept)
        moves = _moving(queues, allow_smaller_final_batch)
        _add_runner(queues.buckets[0], moves, [queues.top])
        _add_runner(queues.top, [sort] * num_threads, queues.buckets)
        _summarize(queues, capacity)
        first, *batch = queues.top.dequeue(name="dequeue_top")
        batch = _restored(batch, stored)
        is_alone = len(batch) == 1 and not _keys(tensors)
        return first, batch[0] if is_alone else _structured(batch, tensors)


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[tf.Tensor, Any]:
    """Batches of sequences of similar length.

    Args:
        input_length: int32 scalar, the length of the example.
        tensors: See `bucket`, as for all other arguments.
        bucket_boundaries: Increasing numbers. Each begins a bucket; lengths below the first one are
            in a bucket of their own.

    Returns:
        The lengths of the batch, int32 [batch]; and the batch, with the structure of `tensors`.

    Raises:
        TypeError: `bucket_boundaries` is not a list of whole numbers.
        ValueError: `bucket_boundaries` is empty or does not increase; and as `bucket` does.
    """
    _check_boundaries(bucket_boundaries)
    example = _listed(tensors)
    with _v1.name_scope(name, "bucket_by_sequence_length", [input_length, *example]):
        length = tf.convert_to_tensor(input_length, _INT32, name="input_length")
        passed = tf.cast(tf.less_equal(list(bucket_boundaries), length), _INT32)
        _, (lengths, *batch) = bucket(
            [length, *example],
            tf.reduce_sum(passed),
            batch_size,
            len(bucket_boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [[], *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        # As in TF 1.15: unlike `bucket`, a list of one stays a list, and one in a dict becomes one.
        if len(_keys(tensors)) == 1:
            return lengths, {_keys(tensors)[0]: batch}
        return lengths, _structured(batch, tensors)


class _Layout(NamedTuple):
    """The sizes and the kind of the queues."""

    batch_sizes: list[Any]
    capacities: Sequence[int]
    top_capacity: int
    make_queue: Callable[..., Any]
    is_size_free: bool
    shared_name: str | None


class _Stored(NamedTuple):
    """A tensor as it is in the queues: itself, or the handle of a SparseTensor in a map."""

    tensor: tf.Tensor
    sparse: Any
    map_name: str


class _Queues(NamedTuple):
    """A queue for each bucket with its batch size, and the queue of batches."""

    buckets: list[Any]
    batch_sizes: list[Any]
    top: Any


def _of_each(
    count: int, batch_size: Any, capacities: Sequence[int] | None, capacity: int
) -> tuple[list[Any], Sequence[int]]:
    """The batch size and the capacity of each bucket."""
    is_list = isinstance(batch_size, (list, tuple))
    if is_list and len(batch_size) != count:
        raise ValueError("If batch_size is a list it must have num_buckets elements")
    if capacities is None:
        capacities = [capacity] * count
    if len(capacities) != count:
        raise ValueError(
            f"The list bucket_capacities ({capacities}) must have exactly num_buckets ({count}) "
            "elements."
        )
    return list(batch_size) if is_list else [batch_size] * count, capacities


def _check_boundaries(bucket_boundaries: Any) -> None:
    if not isinstance(bucket_boundaries, (list, tuple)):
        raise TypeError(
            f"bucket_boundaries must be a list or tuple, but received: {bucket_boundaries}"
        )
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for low, high in itertools.pairwise(bucket_boundaries):
        if not isinstance(low, int) or not isinstance(high, int):
            raise TypeError(f"bucket boundaries must be integers, but saw: {low} and {high}")
        if low >= high:
            raise ValueError(
                f"Buckets must contain sequential increasing lengths, but saw: {low} before {high}"
            )


def _listed(tensors: Any) -> list[Any]:
    return [tensors[key] for key in _keys(tensors)] or list(tensors)


def _keys(tensors: Any) -> list[Any]:
    return sorted(tensors, key=str) if isinstance(tensors, Mapping) else []


def _structured(batch: list[Any], tensors: Any) -> Any:
    """The batch as a dict for a dict, else as it is."""
    keys = _keys(tensors)
    return dict(zip(keys, batch, strict=True)) if keys else batch


def _scalar(keep_input: Any) -> tf.Tensor:
    kept = tf.convert_to_tensor(keep_input)
    if kept.shape.ndims is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if kept.shape.ndims == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if kept.shape.ndims > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return kept


def _static(batch_size: Any) -> Any:
    size = tf.convert_to_tensor(batch_size, _INT32, name="batch_size")
    known = tf.get_static_value(size)
    return size if known is None else int(known)


def _shapes(tensors: list[tf.Tensor]) -> list[tf.TensorShape]:
    for tensor in tensors:
        if tensor.shape.ndims is None:
            raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
    return [tensor.shape for tensor in tensors]


def _if(kept: tf.Tensor, yes: Callable[..., Any], no: Callable[..., Any]) -> Any:
    """A branch without a cond where the answer is known."""
    known = tf.get_static_value(kept)
    if known is None:
        return _v1.cond(kept, yes, no)
    return yes() if known else no()


def _stored(example: list[Any], keep_input: Any, scope: str) -> tuple[list[_Stored], tf.Tensor]:
    """The example as it goes into queues, and True if it does."""
    if not example:
        raise ValueError("Expected at least one tensor in bucket().")
    kept = _scalar(keep_input)
    return [_store(tensor, kept, f"{scope}{i}") for i, tensor in enumerate(example)], kept


def _store(tensor: Any, kept: tf.Tensor, map_name: str) -> _Stored:
    if not isinstance(tensor, tf.SparseTensor):
        return _Stored(tf.convert_to_tensor(tensor), None, "")

    def add() -> tf.Tensor:
        return tf.raw_ops.AddSparseToTensorsMap(
            sparse_indices=tensor.indices,
            sparse_values=tensor.values,
            sparse_shape=tensor.dense_shape,
            shared_name=map_name,
        )

    handle = _if(kept, add, lambda: tf.constant(-1, tf.int64))
    return _Stored(tf.reshape(handle, [1]), tensor, map_name)


def _queues(layout: _Layout, stored: list[_Stored], shapes: Any) -> _Queues:
    sizes = [_static(size) for size in layout.batch_sizes]
    kinds = [part.tensor.dtype for part in stored]
    if shapes is None:
        shapes = _shapes([part.tensor for part in stored])
    shared = layout.shared_name
    buckets = [
        layout.make_queue(
            capacity=capacity,
            dtypes=kinds,
            shapes=shapes,
            shared_name=None if shared is None else f"{shared}_{i}",
            name=f"bucket_queue_{i}",
        )
        for i, capacity in enumerate(layout.capacities)
    ]
    is_known = not layout.is_size_free and not tf.is_tensor(sizes[0])
    batch = tf.TensorShape([sizes[0] if is_known else None])
    # Padding, since a plain queue would refuse a batch size that is not known.
    top = tf.queue.PaddingFIFOQueue(
        capacity=layout.top_capacity,
        dtypes=[_INT32, *kinds],
        shapes=[[], *(batch.concatenate(shape) for shape in buckets[0].shapes)],
        shared_name=shared,
        name="top_queue",
    )
    return _Queues(buckets, sizes, top)


def _restored(batch: list[Any], stored: list[_Stored]) -> list[Any]:
    if not any(part.map_name for part in stored):
        return batch
    restored = [
        _take(tensor, part) if part.sparse is not None else tensor
        for tensor, part in zip(batch, stored, strict=True)
    ]
    # Whichever of them is read, all handles are taken out of their maps.
    values = [f.values if isinstance(f, tf.SparseTensor) else f for f in restored]
    with tf.control_dependencies(values):
        return cast(list[Any], tf.nest.map_structure(tf.identity, restored, expand_composites=True))


def _take(handles: tf.Tensor, part: _Stored) -> tf.SparseTensor:
    """[batch, 1] handles as one SparseTensor, whose first axis is the batch."""
    indices, values, shape = tf.raw_ops.TakeManySparseFromTensorsMap(
        sparse_handles=tf.squeeze(handles, [1]),
        dtype=part.sparse.dtype,
        shared_name=part.map_name,
    )
    rank = part.sparse.shape.rank
    known = None if rank is None else rank + 1
    indices.set_shape([None, known])
    shape.set_shape([known])
    return tf.SparseTensor(indices, values, shape)


def _sorting(
    queues: _Queues, which_bucket: Any, stored: list[_Stored], kept: tf.Tensor
) -> tf.Operation:
    """Puts an example into the queue of its bucket, if it is kept."""
    which = tf.convert_to_tensor(which_bucket, _INT32, name="which_bucket")
    parts = [part.tensor for part in stored]

    def put() -> tf.Operation:
        puts = [
            _v1.cond(tf.equal(which, i), functools.partial(queue.enqueue, parts), tf.no_op)
            for i, queue in enumerate(queues.buckets)
        ]
        return tf.group(*puts, name="group_enqueues")

    return _if(kept, put, tf.no_op)


def _moving(queues: _Queues, is_smaller_allowed: bool) -> list[tf.Operation]:
    """For each bucket, moves a batch to the top queue."""
    moves = []
    for i, (queue, size) in enumerate(zip(queues.buckets, queues.batch_sizes, strict=True)):
        index = tf.constant(i)
        dequeue = queue.dequeue_up_to if is_smaller_allowed else queue.dequeue_many
        batch = dequeue(size, name=f"read_bucket_{i}")
        batch = batch if isinstance(batch, (list, tuple)) else [batch]
        moves.append(queues.top.enqueue([index, *batch], name=f"enqueue_from_bucket_{i}"))
    return moves


def _add_runner(named: Any, enqueues: list[Any], filled: list[Any]) -> None:
    """Adds a runner with a queue's name. It closes the queues that it fills when its input ends."""
    close = [queue.close() for queue in filled]
    cancel = [queue.close(cancel_pending_enqueues=True) for queue in filled]
    runner = _v1.train.QueueRunner(
        named,
        enqueues,
        close_op=tf.group(*close),
        cancel_op=tf.group(*cancel),
        queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
    )
    _v1.train.add_queue_runner(runner)


def _summarize(queues: _Queues, capacity: int) -> None:
    top = queues.top
    # All are sizes of the top queue: TF 1.15 wrote that under the names of the buckets.
    for queue in queues.buckets:
        _v1.summary.scalar(f"bucket/{queue.name}/size", tf.cast(top.size(), tf.float32))
    share = tf.cast(top.size(), tf.float32) * (1.0 / capacity)
    _v1.summary.scalar(f"bucket/{top.name}/fraction_of_{capacity}_full", share)
