"""Arrays and Python generators as the input of an Estimator, as in tutorials of 2016 and 2017.

Sources: `tf.contrib.learn` data_feeder.py and estimator.py, TF 1.15.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import tensorflow as tf

from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.contrib.layers import makers_of_columns

_SEED = 42  # of the order of examples, so that it is the same in each run


def input_fn_of(
    x: Any, y: Any, batch_size: int | None, *, shuffle: bool = False, epochs: int | None = 1
) -> Callable[[], tf.data.Dataset]:
    """An input_fn that reads arrays.

    Args:
        x: Examples: an array, a list or a DataFrame, or a dict of arrays; a number for each example
            is a feature of length 1.
        y: Labels as an array, a dict of arrays or None.
        batch_size: Number of examples at a time; all of them if None. The last batch is smaller.
        shuffle: True for another order in each epoch, the same in each run.
        epochs: Number of them; no end if None.

    Raises:
        UnsupportedError: `x` is an iterator.
    """
    features, labels = _arrays(x), None if y is None else _arrays(y)
    columns = tf.nest.map_structure(_column, features)
    given = columns if labels is None else (columns, labels)
    flat = tf.nest.flatten(given)
    size = len(flat[0])
    each = size if batch_size is None else batch_size

    steps = -(-size // each)
    orders = _Orders(size)

    def take(number: np.int64) -> list[np.ndarray]:
        epoch, step = divmod(int(number), steps)
        rows = orders[epoch] if shuffle else np.arange(size)
        return [array[rows[step * each : (step + 1) * each]] for array in flat]

    def input_fn() -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(_NO_END if epochs is None else steps * epochs)
        return numbers.map(batch)

    def batch(number: tf.Tensor) -> Any:
        tensors = tf.numpy_function(take, [number], [tf.as_dtype(a.dtype) for a in flat])
        for tensor, array in zip(tensors, flat, strict=True):
            tensor.set_shape([None, *array.shape[1:]])
        return tf.nest.pack_sequence_as(given, tensors)

    return input_fn


_NO_END = np.iinfo(np.int64).max


class _Orders:
    """The order of examples in each epoch: permutations by one generator, the same in each run."""

    def __init__(self, size: int):
        self._size = size
        self._generator = np.random.RandomState(_SEED)
        self._first = 0
        self._made: list[np.ndarray] = []

    def __getitem__(self, epoch: int) -> np.ndarray:
        if epoch < self._first:
            self._generator, self._first, self._made = np.random.RandomState(_SEED), 0, []
        while self._first + len(self._made) <= epoch:
            self._made.append(self._generator.permutation(self._size))
            if len(self._made) > _KEPT:
                del self._made[0]
                self._first += 1
        return self._made[epoch - self._first]


_KEPT = 2  # orders: batches that are made ahead may be of the next epoch


def _arrays(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _array(value) for name, value in data.items()}
    return _array(data)


def _array(data: Any) -> np.ndarray:
    if hasattr(data, "columns"):  # a DataFrame
        data = data.to_numpy(dtype=float)
    if hasattr(data, "__next__"):
        raise UnsupportedError(
            "tf.contrib.learn: an iterator of examples is not supported. Give input_fn, with "
            "tf.data.Dataset.from_generator."
        )
    return np.asarray(data)


def _column(array: np.ndarray) -> np.ndarray:
    return array[:, None] if array.ndim == 1 else array


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """A column of numbers for the examples `x`, an array, or for each array of a dict."""
    return infer_real_valued_columns_from_input_fn(input_fn_of(x, None, None))


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """A column of numbers for each feature that `input_fn` gives."""
    with tf.Graph().as_default():
        made = input_fn()
        if isinstance(made, tf.data.Dataset):
            made = tf.compat.v1.data.make_one_shot_iterator(made).get_next()
        return makers_of_columns.infer_real_valued_columns(
            made[0] if isinstance(made, tuple) else made
        )


class SKCompat:
    """An Estimator with the methods of scikit-learn: `fit(x, y)`, `score(x, y)`, `predict(x)`.

    Args:
        estimator: Of `tf.contrib.learn`.
    """

    def __init__(self, estimator: Any):
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Any = None,
    ) -> SKCompat:
        """Trains on arrays, which are shuffled, and returns itself."""
        input_fn = input_fn_of(x, y, batch_size, shuffle=True, epochs=None)
        self._estimator.fit(input_fn=input_fn, steps=steps, max_steps=max_steps, monitors=monitors)
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = 128,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics on arrays."""
        return cast(
            dict[str, Any],
            self._estimator.evaluate(
                input_fn=input_fn_of(x, y, batch_size), steps=steps, metrics=metrics, name=name
            ),
        )

    def predict(self, x: Any, batch_size: int | None = 128, outputs: Any = None) -> Any:
        """Predictions for arrays, as an array or as a dict of arrays."""
        batches = self._estimator.e2s_batches(input_fn_of(x, None, batch_size), outputs)
        return tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)


_v1 = tf.compat.v1


def generator_input_fn(
    x: Callable[[], Iterator[Mapping[str, np.ndarray]]],
    target_key: str | Collection[str] | None = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    pad_value: Any = None,
) -> Callable[[], Any]:
    """An input_fn that returns batches of the dicts of arrays that a generator yields.

    Args:
        x: A generator function. Each dict that it yields is one example, and one call of it yields
            one epoch.
        target_key: The key of the labels, or several; None: the input has features only.
        batch_size: Examples in a batch; the very last may be smaller.
        num_epochs: Epochs to read; None: no end. As in the original, reading goes on into the next
            epoch until a feed of `batch_size` arrays is full.
        shuffle: True if examples are shuffled.
        queue_capacity: Among how many examples shuffling chooses.
        num_threads: The original's threads read `num_epochs` epochs each, so this multiplies them.
        pad_value: Fills up arrays of different lengths; None: all have one shape.

    Returns:
        `input_fn()`, which returns a dict of features, or (features, labels). Labels of several
        keys are a dict.

    Raises:
        TypeError: `x` or `target_key` is of another type.
        KeyError: There is no such key in the dicts.
        NotImplementedError: From input_fn: examples are shuffled and padded.

    Source: `tf.contrib.learn.io.generator_input_fn`, TF 1.15.
    """
    example = _example(x)
    targets = _targets(target_key, example)

    def input_fn() -> Any:
        if shuffle and pad_value is not None:
            raise NotImplementedError(
                "padding and shuffling data at the same time is not implemented"
            )
        epochs = num_epochs * num_threads if num_epochs else None
        rows = _Rows(x, sorted(example), batch_size, epochs, pad_value)
        dataset = tf.data.Dataset.from_generator(
            lambda: rows, output_signature=_signature(example, pad_value is not None)
        )
        dataset = dataset.shuffle(queue_capacity) if shuffle else dataset
        batch = dataset.batch if pad_value is None else dataset.padded_batch
        batches = batch(batch_size, drop_remainder=num_epochs is None).prefetch(1)
        features = dict(_v1.data.make_one_shot_iterator(batches).get_next())
        if not targets:
            return features
        labels = {key: features.pop(key) for key in targets}
        return features, labels if len(targets) > 1 else labels[targets[0]]

    return input_fn


def _example(x: Any) -> Mapping[str, np.ndarray]:
    """The first example of a generator function."""
    if not isinstance(x, types.FunctionType):
        raise TypeError(f"x must be generator function; got {type(x).__name__}")
    generator = x()
    if not isinstance(generator, types.GeneratorType):
        raise TypeError(f"x() must be generator; got {type(generator).__name__}")
    example = next(generator)
    if not isinstance(example, dict):
        raise TypeError(f"x() must yield dict; got {type(example).__name__}")
    return example


def _targets(target_key: Any, example: Mapping[str, Any]) -> list[str]:
    """The keys of the labels."""
    if target_key is None:
        return []
    if isinstance(target_key, str):
        return [target_key]
    if not isinstance(target_key, Collection):
        raise TypeError(
            f"target_key must be str or Container of str; got {type(target_key).__name__}"
        )
    for key in target_key:
        if not isinstance(key, str):
            raise TypeError(f"target_key must be str or Container of str; got {type(key).__name__}")
        if key not in example:
            raise KeyError(
                f"target_key not in yielded dict. Expected {sorted(example)} keys; got {key}"
            )
    return list(target_key)


def _signature(example: Mapping[str, Any], padded: bool) -> dict[str, tf.TensorSpec]:
    """The type and the shape of an example; the last axis of what is padded has any length."""

    def shape(array: Any) -> Sequence[int | None]:
        return (*array.shape[:-1], None) if padded and array.shape else array.shape

    return {key: tf.TensorSpec(shape(a), tf.as_dtype(a.dtype)) for key, a in example.items()}


class _Rows:
    """The examples of several epochs, each time that it is iterated.

    The original fed `batch_size` arrays at once, and looked for the end of its epochs between two
    feeds only. So a few examples of one more epoch are read.
    """

    def __init__(
        self,
        function: Callable[[], Iterator[Mapping[str, Any]]],
        keys: Sequence[str],
        batch_size: int,
        num_epochs: int | None,
        pad_value: Any,
    ):
        self._function = function
        self._keys = keys
        self._per_feed = -(-batch_size // len(keys))
        self._num_epochs = num_epochs
        self._pad_value = pad_value

    def __iter__(self) -> Iterator[dict[str, Any]]:
        epoch, generator = 0, self._function()
        while self._num_epochs is None or epoch < self._num_epochs:
            feed = list(itertools.islice(generator, self._per_feed))
            while len(feed) < self._per_feed:
                epoch, generator = epoch + 1, self._function()
                more = list(itertools.islice(generator, self._per_feed - len(feed)))
                if not more:
                    raise ValueError("The generator of generator_input_fn yields nothing.")
                feed += more
            yield from self._padded([self._checked(row) for row in feed])

    def _checked(self, row: Mapping[str, Any]) -> dict[str, Any]:
        for key in self._keys:
            if key not in row:
                raise KeyError(
                    f"key mismatch between dicts emitted by GenFun Expected {self._keys} keys; "
                    f"got {row.keys()}"
                )
        return {key: row[key] for key in self._keys}

    def _padded(self, feed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The examples of a feed, each array as long as the longest of its key."""
        if self._pad_value is None:
            return feed
        columns = {key: _filled([row[key] for row in feed], self._pad_value) for key in self._keys}
        return [{key: columns[key][i] for key in self._keys} for i in range(len(feed))]


def _filled(arrays: list[Any], pad_value: Any) -> list[Any]:
    if any(array.shape[:-1] != arrays[0].shape[:-1] for array in arrays):
        raise ValueError("Array shapes must match.")
    if not arrays[0].shape:
        return arrays
    longest = max(array.shape[-1] for array in arrays)

    def filled(array: Any) -> Any:
        missing = [(0, 0)] * (array.ndim - 1) + [(0, longest - array.shape[-1])]
        return np.pad(array, missing, constant_values=pad_value)

    return [filled(array) for array in arrays]
