"""`numpy_input_fn` and `pandas_input_fn`: input functions of arrays in memory.

The original fed queues from Python threads. Here a dataset makes row numbers, and each batch takes
its rows from the arrays. The arrays are neither copied nor put into the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.wrong_argument import checked, wrong_argument
from estimator2strategy.estimator.contract_rules import INPUT_RULES, PANDAS_RULES

tf1 = tf.compat.v1

__all__ = ["numpy_input_fn", "pandas_input_fn"]


@checked(INPUT_RULES)
def numpy_input_fn(
    x: np.ndarray | Mapping[str, np.ndarray],
    y: np.ndarray | Mapping[str, np.ndarray] | None = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input_fn that returns batches of rows of numpy arrays.

    Args:
        x: Features: an array or a dict of arrays, of one length.
        y: Labels, likewise; None: the input has features only.
        batch_size: Rows in a batch. Batches go across the end of an epoch; the very last may be
            smaller.
        num_epochs: The number of passes over the rows; None: no end.
        shuffle: Must be given.
        queue_capacity: Among how many rows shuffling chooses.
        num_threads: The original's threads read `num_epochs` epochs each, so this multiplies them.

    Returns:
        `input_fn()`, which returns features like `x`, or (features, labels).

    Raises:
        ValueError: `shuffle` is no bool; from input_fn: empty arrays, different lengths, a key
            that is in both dicts.
        TypeError: From input_fn: `x` is neither an array nor a dict.

    Source: `tf.compat.v1.estimator.inputs.numpy_input_fn`, tensorflow_estimator 2.15.
    """
    _check_shuffle(shuffle)
    rows = _Rows()

    def input_fn() -> Any:
        features = _arrays_of(x)
        labels = _labels_of(y)
        both = sorted(set(features) & set(labels))
        if both:
            raise _wrong(f"{len(both)} duplicate keys are found in both x and y", both)
        if len({len(array) for array in (*features.values(), *labels.values())}) > 1:
            raise _wrong(
                "Length of tensors in x and y is mismatched. All elements in x and y must have the "
                f"same length.\nShapes in x: {_shapes(features)}\nShapes in y: {_shapes(labels)}\n",
                {**_shapes(features), **_shapes(labels)},
            )
        columns = [*features.values(), *labels.values()]
        batch = _batches(
            rows, columns, batch_size, num_epochs, shuffle, queue_capacity, num_threads
        )
        taken = dict(zip(features, batch, strict=False))
        targets = dict(zip(labels, batch[len(features) :], strict=True))
        first = taken if isinstance(x, Mapping) else batch[0]
        if y is None:
            return first
        return first, targets if isinstance(y, Mapping) else batch[-1]

    return input_fn


def _wrong(what: str, value: Any, error: type[Exception] = ValueError) -> Exception:
    """The error for arrays, which are looked at when Estimator calls the input_fn."""
    name = "y" if what.startswith("y ") else "x"
    return wrong_argument(what, value, INPUT_RULES[name].instead, error)


def _arrays_of(x: Any) -> dict[str, np.ndarray]:
    if isinstance(x, Mapping):
        if not x:
            raise _wrong("x cannot be an empty dict", x)
        return dict(sorted(x.items()))
    if not isinstance(x, np.ndarray):
        raise _wrong(f"x must be a dict or array; got {type(x).__name__}", x, TypeError)
    if x.size == 0:
        raise _wrong("x cannot be an empty array", x)
    return {"__x__": x}


def _labels_of(y: Any) -> dict[str, np.ndarray]:
    if y is None:
        return {}
    if not isinstance(y, Mapping):
        return {"__y__": y}
    if not y:
        raise _wrong("y cannot be empty dict, use None instead", y)
    return dict(sorted(y.items()))


def _shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {key: array.shape for key, array in arrays.items()}


@checked(PANDAS_RULES)
def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int | None = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """An input_fn that returns batches of rows of a pandas DataFrame.

    Args:
        x: DataFrame of features.
        y: Series or DataFrame of labels, with the index of `x`; None: the input has features only.
        batch_size: As for `numpy_input_fn`, and so are the others.
        queue_capacity: None: as many as there are rows.
        target_column: What labels of a Series are called among the columns of `x`, where no
            column may have that name.

    Returns:
        `input_fn()`, which returns a dict of features by column, or (features, labels); the labels
        of a DataFrame are a dict, too.

    Raises:
        ValueError: `shuffle` is no bool; `x` has a column `target_column`; the indices differ.
        TypeError: `target_column` is no string.

    Source: `tf.compat.v1.estimator.inputs.pandas_input_fn`, tensorflow_estimator 2.15.
    """
    _check_shuffle(shuffle)
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string type")
    x = x.copy()
    labels = {} if y is None else _label_columns(x, y, target_column)
    features = _columns(x)
    capacity = len(x) if queue_capacity is None else queue_capacity
    rows = _Rows()

    def input_fn() -> Any:
        columns = [*features.values(), *labels.values()]
        batch = _batches(rows, columns, batch_size, num_epochs, shuffle, capacity, num_threads)
        taken = dict(zip(features, batch, strict=False))
        targets = dict(zip(labels, batch[len(features) :], strict=True))
        if y is None:
            return taken
        return taken, targets if _is_frame(y) else batch[-1]

    return input_fn


def _label_columns(x: Any, y: Any, target_column: str) -> dict[str, np.ndarray]:
    """The columns of `y`, or `y` itself as the column `target_column`, of the rows of `x`."""
    if target_column in x:
        raise ValueError(
            f"Cannot use name {target_column} for target column: DataFrame already has a "
            f"column with that name: {x.columns}"
        )
    if not np.array_equal(x.index, y.index):
        raise ValueError(
            f"Index for x and y are mismatched.\nIndex for x: {x.index}\nIndex for y: {y.index}\n"
        )
    return _columns(y.copy()) if _is_frame(y) else {target_column: y.to_numpy(copy=True)}


def _is_frame(y: Any) -> bool:
    """A DataFrame has columns, a Series has none. So pandas need not be imported."""
    return hasattr(y, "columns")


def _columns(frame: Any) -> dict[str, np.ndarray]:
    return {column: frame[column].to_numpy() for column in frame.columns}


def _check_shuffle(shuffle: Any) -> None:
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it "
            f"as True for training); got {shuffle}"
        )


def _batches(
    rows: _Rows,
    columns: Sequence[np.ndarray],
    batch_size: int,
    num_epochs: int | None,
    shuffle: bool | None,
    capacity: int,
    num_threads: int,
) -> list[tf.Tensor]:
    """The next batch of each column, taken anew at each step.

    Source: `_enqueue_data`, tensorflow_estimator 2.15 feeding_functions.py.
    """
    if num_threads > 1 and num_epochs is not None:
        tf1.logging.warn(
            "num_epochs is applied per thread: with num_threads=%d this input has %d epochs. Use "
            "num_threads=1.",
            num_threads,
            num_threads * num_epochs,
        )
        num_epochs *= num_threads
    # The original's scope: a variable of the program may have the name of an op in it, as `count`.
    with tf1.name_scope("enqueue_input"):
        numbers = _row_numbers(len(columns[0]), num_epochs, capacity if shuffle else None)
        numbers = numbers.batch(batch_size, drop_remainder=num_epochs is None)
        rows_by_number = numbers.map(_row_taker(rows, columns)).prefetch(1)
        return list(tf1.data.make_one_shot_iterator(rows_by_number).get_next())


def _row_numbers(count: int, num_epochs: int | None, capacity: int | None) -> tf.data.Dataset:
    """The numbers of `count` rows in each epoch, int64; None for `capacity`: not shuffled."""
    if capacity is None:
        return tf.data.Dataset.range(count).repeat(num_epochs)

    def from_row(start: tf.Tensor) -> tf.data.Dataset:
        return tf.data.Dataset.range(count).map(lambda i: (i + start) % count).repeat(num_epochs)

    # From a random row on, since the rows that shuffling chooses among may be few.
    return tf.data.Dataset.random().take(1).flat_map(from_row).shuffle(capacity)


def _row_taker(
    rows: _Rows, columns: Sequence[np.ndarray]
) -> Callable[[tf.Tensor], tuple[tf.Tensor, ...]]:
    # A Series may have a dtype of pandas' own, as strings do since pandas 3; its rows have numpy's.
    dtypes = [tf.as_dtype(np.asarray(column[:0]).dtype) for column in columns]
    rows_of = rows.function_of(columns)

    def take(numbers: tf.Tensor) -> tuple[tf.Tensor, ...]:
        taken = tf.numpy_function(rows_of, [numbers], dtypes)
        for tensor, column in zip(taken, columns, strict=True):
            tensor.set_shape([numbers.shape[0], *column.shape[1:]])
        return tuple(taken)

    return take


class _Rows:
    """Functions that take rows of arrays: one and the same for the same arrays.

    By it an input is known that was there before; see `runtime/evaluation_cache.py`.
    """

    def __init__(self) -> None:
        self._columns: Sequence[np.ndarray] = ()
        self._function: Callable[..., Any] = lambda numbers: []

    def function_of(
        self, columns: Sequence[np.ndarray]
    ) -> Callable[[np.ndarray], list[np.ndarray]]:
        if [*map(id, columns)] != [*map(id, self._columns)]:

            def function(numbers: np.ndarray) -> list[np.ndarray]:
                taken = [np.asarray(column[numbers]) for column in columns]
                return [_encoded(part) if part.dtype.kind in "OU" else part for part in taken]

            self._columns, self._function = columns, function
        return self._function


def _encoded(strings: np.ndarray) -> np.ndarray:
    """Strings as TensorFlow keeps them."""
    encoded = [s.encode() if isinstance(s, str) else s for s in strings.ravel()]
    return np.array(encoded, dtype=object).reshape(strings.shape)
