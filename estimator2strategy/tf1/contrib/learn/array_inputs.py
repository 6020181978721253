"""Arrays as the input of an Estimator of `tf.contrib.learn`, which tutorials of 2016 and 2017 use.

Sources: `tf.contrib.learn` data_feeder.py and estimator.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
