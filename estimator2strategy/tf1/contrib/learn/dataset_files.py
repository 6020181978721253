"""`tf.contrib.learn.datasets` of TF 1.15: files of examples as arrays.

What TensorFlow shipped or loaded from its own servers (Boston's prices, DBpedia) is refused.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.contrib import names_of
from estimator2strategy.tf1.contrib.learn.mnist_digits import Dataset, load_mnist
from estimator2strategy.tf1.contrib.learn.mnist_digits import Datasets as Datasets
from estimator2strategy.tf1.contrib.learn.mnist_digits import maybe_download as maybe_download
from estimator2strategy.tf1.contrib.learn.mnist_digits import retry as retry
from estimator2strategy.tf1.contrib.learn.mnist_digits import (
    urlretrieve_with_retry as urlretrieve_with_retry,
)

__getattr__ = names_of("learn.datasets", globals())


def load_csv_with_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A CSV file whose first line starts with the numbers of examples and of features.

    Returns:
        `data` of shape (examples, features) and `target` of shape (examples,).
    """
    header, *rows = _csv_rows(filename)
    examples, features = int(header[0]), int(header[1])
    data = np.zeros((examples, features), dtype=features_dtype)
    target = np.zeros((examples,), dtype=target_dtype)
    for place, row in enumerate(rows):
        target[place] = np.asarray(row.pop(target_column), dtype=target_dtype)
        data[place] = np.asarray(row, dtype=features_dtype)
    return Dataset(data, target)


def load_csv_without_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Like `load_csv_with_header`, for a file in which each line is an example."""
    rows = _csv_rows(filename)
    target = [row.pop(target_column) for row in rows]
    data = [np.asarray(row, dtype=features_dtype) for row in rows]
    return Dataset(np.array(data), np.array(target, dtype=target_dtype))


def shrink_csv(filename: str, ratio: int) -> None:
    """Writes each line of a CSV file whose number `ratio` divides to a file `..._small.csv`."""
    text = io.StringIO()
    csv.writer(text).writerows(_csv_rows(filename)[::ratio])
    with tf.io.gfile.GFile(filename.replace(".", "_small."), "w") as file:
        file.write(text.getvalue())


def load_iris(data_path: str | None = None) -> Dataset:
    """Fisher's 150 flowers: four lengths each, and one of three species.

    Args:
        data_path: A CSV file with a header to read instead of scikit-learn's copy.

    Raises:
        UnsupportedError: No path is given and scikit-learn is not installed.
    """
    if data_path is not None:
        return load_csv_with_header(data_path, target_dtype=int, features_dtype=float)
    try:
        from sklearn import datasets
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "load_iris() reads scikit-learn's copy of the flowers: pip install scikit-learn, or "
            "pass a CSV file as data_path."
        ) from error
    flowers = datasets.load_iris()
    return Dataset(flowers.data, flowers.target)


def load_boston(data_path: str | None = None) -> Dataset:
    """Boston's house prices, from a CSV file with a header.

    Raises:
        UnsupportedError: No path is given: libraries no longer ship these data.
    """
    if data_path is None:
        raise UnsupportedError(
            "load_boston() read a file that TensorFlow no longer ships: pass a CSV file as "
            "data_path, or take tf.keras.datasets.boston_housing."
        )
    return load_csv_with_header(data_path, target_dtype=float, features_dtype=float)


DATASETS: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "boston": load_boston,
    "mnist": load_mnist,
}


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The data set `name` of `DATASETS`. The other arguments were for DBpedia alone.

    Raises:
        UnsupportedError: DBpedia, which is not loaded here.
        ValueError: There is no such data set.
    """
    del size, test_with_fake_data
    if name == "dbpedia":
        raise UnsupportedError("DBpedia is not loaded here; tensorflow-datasets has dbpedia.")
    if name not in DATASETS:
        raise ValueError(f"Name of dataset is not found: {name}")
    return DATASETS[name]()


def _csv_rows(filename: str) -> list[list[str]]:
    with tf.io.gfile.GFile(filename) as file:
        return list(csv.reader(io.StringIO(file.read())))
