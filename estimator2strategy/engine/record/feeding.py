"""Records the way of batches to the replicas: one function per input pipeline of TPUConfig.

Each function gets the result of input_fn. It returns the (features, labels) of every replica, and
the hooks that start the input. These are tensors of the recorded host graph, to which each step
gives new values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record import input_fn as inputs_lib
from estimator2strategy.engine.user_code import location, user_line
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.errors import RecordingError, UnsupportedError

tf1 = tf.compat.v1


Hooks: TypeAlias = tuple[tf1.train.SessionRunHook, ...]


class Fed(NamedTuple):
    """The tensors that the replicas get.

    Attributes:
        replicas: The flat components of (features, labels), replica by replica.
        structure: (features, labels) of replica 0, to pack components like.
        hooks: Start the input.
        padding: Predict only: per replica, a [batch] tensor that is 1 where an example is padding.
    """

    replicas: list[list[tf.Tensor]]
    structure: Any
    hooks: Hooks
    padding: Any = None


def together(parts: Sequence[Fed], numbers: Sequence[Sequence[int]]) -> Fed:
    """The input of several hosts as one.

    Args:
        parts: Per host, the input of its replicas.
        numbers: Per host, the numbers of its replicas among all.
    """
    of_replica = sorted(
        (replica, part, i)
        for part, of_host in enumerate(numbers)
        for i, replica in enumerate(of_host)
    )
    padding = [part.padding for part in parts if part.padding is not None]
    return parts[0]._replace(
        replicas=[parts[part].replicas[i] for _, part, i in of_replica],
        hooks=tuple(hook for part in parts for hook in part.hooks),
        padding=[padding[part][i] for _, part, i in of_replica] if padding else None,
    )


def check_static(features: Any, labels: Any, input_fn: Callable[..., Any]) -> None:
    """Raises ValueError unless all shapes of a replica's (features, labels) are known."""
    for name, part in {"features": features, "labels": labels}.items():
        for tensor in () if part is None else tf.nest.flatten(part, expand_composites=True):
            if not tensor.shape.is_fully_defined():
                raise _no_static_shape(name, tensor, input_fn)


def _no_static_shape(
    name: str, tensor: tf.Tensor, input_fn: Callable[..., Any] | None = None
) -> ValueError:
    where = f", from {location(input_fn)}" if input_fn is not None else ""
    return wrong_argument(
        f"The {name} to the model returned by input_fn must have static shape. Tensor: "
        f"{tensor.name}{where}",
        _sizes(tensor),
        "Where the dataset is batched, pass drop_remainder=True.",
    )


def check_no_strings(features: Any, labels: Any, input_fn: Callable[..., Any]) -> None:
    """Raises TypeError if a core's (features, labels) have a string: no TPU takes one.

    Source: `infeed_dequeue_tuple`, tensorflow 1.15 to 2.21 tpu_ops.py.
    """
    for name, part in {"features": features, "labels": labels}.items():
        for tensor in () if part is None else tf.nest.flatten(part, expand_composites=True):
            if tensor.dtype == tf.string:
                raise TypeError(
                    f"{tensor.dtype} is not a supported TPU infeed type. It is the type of "
                    f"{tensor} in the {name} from {location(input_fn)}. Leave it out of what "
                    "input_fn returns, or make numbers of it there: tf.strings.to_hash_bucket_fast,"
                    " a tf.lookup table."
                )


def check_no_python_elsewhere(graph: tf.Graph) -> None:
    """Raises UnsupportedError if another host is to call a Python function of this process."""
    elsewhere = [op for op in graph.get_operations() if _is_elsewhere(op.device)]
    recorded = RecordedGraph(graph) if elsewhere else None
    for op in elsewhere:
        if recorded and recorded.call_python([op.name]):
            raise UnsupportedError(
                f"input_fn calls a Python function on another host, {op.device}. It is made at "
                f"{user_line(op.traceback)}\n"
                "  Each host of a TPU pod makes its own batches, and cannot call functions of this "
                "process.\n"
                "  In place of from_generator, write the examples to files and read them with "
                "tf.data.TFRecordDataset; in place of py_func, map a function of TensorFlow ops."
            )


def _is_elsewhere(device: str) -> bool:
    return tf.DeviceSpec.from_string(device).job not in (None, "localhost")


def per_shard(results: Sequence[Any]) -> Fed:
    """PER_SHARD_V1: input_fn is called once per replica and returns tensors.

    Args:
        results: The results of these calls, replica by replica.
    """
    parts = []
    for result in results:
        if isinstance(result, tf.data.Dataset):
            raise TypeError(
                "`input_fn` returning `Dataset` is not yet supported in per-Core input pipeline "
                "deployment yet. Please set TPUConfig.per_host_input_for_training to True or "
                "return `features` and `labels` from `input_fn`"
            )
        parts.append(inputs_lib.features_and_labels(result))
    return _fed([_pair(part) for part in parts], ())


def per_host(result: Any, num_replicas: int, batch_axis: Sequence[int] | None = None) -> Fed:
    """PER_HOST_V1 and SLICED: input_fn's batch is split over the replicas."""
    inputs = inputs_lib.features_and_labels(result)
    structure = _present(_pair(inputs))
    flat = tf.nest.flatten(structure)
    axes = list(batch_axis) if batch_axis is not None else [0] * len(flat)
    if len(axes) != len(flat):
        raise ValueError(
            f"shard_dimensions is {axes}, but must be a list of length {len(flat)}: batch_axis of "
            "TPUEstimator has one axis for each tensor of the features and labels that input_fn "
            "returns."
        )
    splits = [_split(t, num_replicas, axis) for t, axis in zip(flat, axes, strict=True)]
    parts = [tf.nest.pack_sequence_as(structure, part) for part in zip(*splits, strict=True)]
    return _fed([(*part, None)[:2] for part in parts], inputs.hooks)


def per_host_v2(dataset: Any, num_replicas: int) -> Fed:
    """PER_HOST_V2: input_fn's Dataset has a batch for each replica, which takes the next one."""
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            "`input_fn` must return a `Dataset` for the PER_HOST_V2 input pipeline configuration."
        )
    return _next_of_each(dataset, num_replicas)


def per_replica(result: Any, num_replicas: int) -> Fed:
    """`train_distribute`: each replica takes the next batch of input_fn's Dataset.

    Without a Dataset (tensors of an iterator, say) every replica gets the same.
    """
    if isinstance(result, tf.data.Dataset):
        return _next_of_each(result, num_replicas)
    inputs = inputs_lib.features_and_labels(result)
    return _fed([_pair(inputs)] * num_replicas, inputs.hooks)


def per_replica_to_the_end(result: Any, num_replicas: int) -> Fed:
    """`eval_distribute`: as `per_replica`, and the last batches count, however few they are.

    Features become `(features, real)`. `real` is False for a replica that found no batch any more:
    it gets the first one again.
    """
    if not isinstance(result, tf.data.Dataset):
        inputs = inputs_lib.features_and_labels(result)
        pair = ((inputs.features, tf.constant(True)), inputs.labels)
        return _fed([pair] * num_replicas, inputs.hooks)

    def marked(dataset: tf.data.Dataset, real: bool) -> tf.data.Dataset:
        return tf.data.Dataset.zip((dataset, tf.data.Dataset.from_tensors(real).repeat()))

    filler = marked(result.take(1), real=False).repeat(num_replicas - 1)
    elements, hooks = _next_elements(marked(result, real=True).concatenate(filler), num_replicas)
    pairs = []
    for element, real in elements:
        inputs = inputs_lib.features_and_labels(element)
        pairs.append(((inputs.features, real), inputs.labels))
    return _fed(pairs, hooks)


def broadcast(result: Any, num_replicas: int) -> Fed:
    """BROADCAST: every replica gets the whole of input_fn's batch."""
    inputs = inputs_lib.features_and_labels(result)
    return _fed([_pair(inputs)] * num_replicas, inputs.hooks)


def padded(dataset: Any, num_replicas: int, batch_size: int, whole: bool) -> Fed:
    """Predict: the last batch is filled up, and what is padding is marked.

    Args:
        batch_size: Of the Dataset's batches.
        whole: The Dataset's batches are for all replicas together, and are split.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            "For mode PREDICT, `input_fn` must return `Dataset` instead of `features` and `labels`."
        )
    dataset = dataset.map(_named)
    _check_can_be_padded(dataset, batch_size)
    dataset = dataset.map(lambda element: _pad(element, batch_size))
    if whole:
        inputs, hooks = inputs_lib.iterate(dataset)
        flat = [_split(t, num_replicas, 0) for t in tf.nest.flatten(inputs)]
        parts = [tf.nest.pack_sequence_as(inputs, part) for part in zip(*flat, strict=True)]
    else:
        # The replicas that find no batch in the last step get one that is padding throughout.
        empty = tf.nest.map_structure(
            lambda spec: tf.zeros(spec.shape, spec.dtype), dataset.element_spec
        )
        empty["padding"] = tf.ones_like(empty["padding"])
        filler = tf.data.Dataset.from_tensors(empty).repeat(num_replicas - 1)
        parts, hooks = _next_elements(dataset.concatenate(filler), num_replicas)
    pairs = [(part["features"], part.get("labels")) for part in parts]
    return _fed(pairs, hooks)._replace(padding=[part["padding"] for part in parts])


def padded_broadcast(dataset: Any, num_replicas: int, batch_size: int) -> Fed:
    """Predict, BROADCAST: as `padded`, and every replica gets the whole of the batch."""
    fed = padded(dataset, 1, batch_size, whole=True)
    return fed._replace(replicas=fed.replicas * num_replicas, padding=fed.padding * num_replicas)


def _named(*element: Any) -> dict[str, Any]:
    """The features, and the labels if there are some: TPU model_fns get them in prediction too."""
    if len(element) == 1 and isinstance(element[0], tuple):
        element = element[0]
    inputs = inputs_lib.features_and_labels(element if len(element) > 1 else element[0])
    named = {"features": inputs.features}
    return named if inputs.labels is None else {**named, "labels": inputs.labels}


def _check_can_be_padded(dataset: tf.data.Dataset, batch_size: int) -> None:
    """Raises RecordingError unless all of an element are batches of at most `batch_size`."""
    for spec in tf.nest.flatten(dataset.element_spec):
        if not isinstance(spec, tf.TensorSpec):
            found, instead = (
                "is no dense tensor",
                "Make it one in input_fn, say by tf.sparse.to_dense.",
            )
        elif spec.shape.rank is None:
            found, instead = "has an unknown shape", "Say its shape in input_fn, by set_shape."
        elif spec.shape.rank == 0:
            found, instead = "is a scalar", "Leave it out, or repeat it for each example."
        elif (spec.shape[0] or 0) > batch_size:
            found, instead = f"has more than {batch_size}", "Batch by params['batch_size']."
        else:
            continue
        raise wrong_argument(
            f"The Dataset of input_fn must have batches of at most {batch_size} examples for "
            f"TPUEstimator.predict, which fills the last one up, and a part of it {found}",
            spec,
            instead,
            RecordingError,
        )


def _pad(element: dict[str, Any], batch_size: int) -> dict[str, Any]:
    """Fills the batch up with zeros to a static size; `padding` marks what was added."""
    real = tf.shape(tf.nest.flatten(element["features"])[0])[0]
    fits = tf1.debugging.assert_greater_equal(
        batch_size, real, message="The real batch size should not be greater than batch_size."
    )
    with tf.control_dependencies([fits] if fits is not None else []):
        missing = batch_size - real

    def fill(tensor: tf.Tensor) -> tf.Tensor:
        paddings = tf.concat([[[0, missing]], tf.zeros([len(tensor.shape) - 1, 2], tf.int32)], 0)
        filled = tf.pad(tensor, paddings)
        filled.set_shape([batch_size, *tensor.shape.as_list()[1:]])
        return filled

    padding = tf.concat([tf.zeros([batch_size - missing]), tf.ones([missing])], 0)
    padding.set_shape([batch_size])
    return {**tf.nest.map_structure(fill, element), "padding": padding}


def _next_of_each(dataset: tf.data.Dataset, num_replicas: int) -> Fed:
    elements, hooks = _next_elements(dataset, num_replicas)
    return _fed([_pair(inputs_lib.features_and_labels(element)) for element in elements], hooks)


def _next_elements(dataset: tf.data.Dataset, count: int) -> tuple[list[Any], Hooks]:
    """`count` successive elements; replay keeps the order of creation."""
    iterator = tf1.data.make_initializable_iterator(dataset)
    elements = [iterator.get_next() for _ in range(count)]
    return elements, (inputs_lib.DatasetInitializerHook(iterator),)


def _split(tensor: tf.Tensor, num_replicas: int, axis: int) -> list[tf.Tensor]:
    if not tf.is_tensor(tensor):
        raise wrong_argument(
            "input_fn returned what cannot be dealt out to cores",
            tensor,
            "Return from input_fn a Dataset, or (features, labels): tensors, or dicts of them.",
            RecordingError,
        )
    if tensor.shape.rank is not None and axis >= tensor.shape.rank > 0:
        raise wrong_argument(
            f"batch_axis of TPUEstimator has an axis that {tensor} of input_fn has not",
            axis,
            f"Pass an axis below {tensor.shape.rank} for it.",
        )
    size = tf.compat.dimension_value(tensor.shape[axis]) if tensor.shape.rank else None
    if size is None:
        raise _no_static_shape("features", tensor)
    if size % num_replicas:
        raise wrong_argument(
            f"input_fn returned a batch of {size} examples, which cannot be split over "
            f"{num_replicas} cores: {tensor.name}",
            _sizes(tensor),
            f"Batch by params['batch_size'].{_transposed(tensor, num_replicas)}",
            RecordingError,
        )
    parts: list[tf.Tensor] = tf.split(tensor, num_replicas, axis)
    return parts


def _sizes(tensor: tf.Tensor) -> list[int | None] | str:
    return "unknown" if tensor.shape.rank is None else tensor.shape.as_list()


def _transposed(tensor: tf.Tensor, num_replicas: int) -> str:
    """Returns a hint about `batch_axis` if another axis fits the replicas; else an empty string."""
    sizes = list(enumerate(tensor.shape.as_list()))
    fits = next((axis for axis, size in reversed(sizes) if size and not size % num_replicas), None)
    if fits is None:
        return ""
    return (
        f" If they lie along axis {fits}, say so: TPUEstimator(batch_axis=[...]) has one axis for "
        "each tensor of the features and labels."
    )


def _pair(inputs: Any) -> tuple[Any, Any]:
    return inputs.features, inputs.labels


def _fed(pairs: list[tuple[Any, Any]], hooks: Hooks) -> Fed:
    flat = [tf.nest.flatten(_present(pair), expand_composites=True) for pair in pairs]
    tensors = [[tf.convert_to_tensor(part) for part in parts] for parts in flat]
    for replica in range(1, len(tensors)):
        _check_alike(tensors[0], tensors[replica], replica)
    return Fed(tensors, _present(pairs[0]), hooks)


def _check_alike(first: list[tf.Tensor], other: list[tf.Tensor], replica: int) -> None:
    """Raises RecordingError unless all replicas get the same dtypes and shapes."""

    def described(tensors: list[tf.Tensor]) -> list[str]:
        return [f"{t.dtype.name} {t.shape}" for t in tensors]

    if described(first) != described(other):
        raise RecordingError(
            "input_fn must return the same shapes and dtypes for every core. For core "
            f"{replica} it returned {described(other)}, for core 0 {described(first)}."
        )


def _present(pair: tuple[Any, Any]) -> tuple[Any, ...]:
    """Returns (features, labels), or (features,) without labels: None cannot be fed."""
    features, labels = pair
    return (features,) if labels is None else (features, labels)
