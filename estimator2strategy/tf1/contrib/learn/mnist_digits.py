"""The digits of MNIST as TF 1.15's tutorials read them, and the download of such files.

This is `tensorflow.examples.tutorials.mnist.input_data`, and `tf.contrib.learn.datasets.mnist`.
"""

from __future__ import annotations

import collections
import errno
import functools
import gzip
import os
import random
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import patches

__all__ = ["DataSet", "dense_to_one_hot", "extract_images", "extract_labels", "load_mnist"]
__all__ += ["maybe_download", "read_data_sets"]

DEFAULT_SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_IMAGES, _LABELS = 2051, 2049
_PIXELS, _CLASSES = 784, 10


Dataset = collections.namedtuple("Dataset", ("data", "target"))
Datasets = collections.namedtuple("Datasets", ("train", "validation", "test"))


def retry(
    initial_delay: float,
    max_delay: float,
    factor: float = 2.0,
    jitter: float = 0.25,
    is_retriable: Callable[[Exception], bool] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function is called again while it fails.

    Args:
        initial_delay: Seconds until the second call.
        max_delay: The longest delay.
        factor: From one delay to the next.
        jitter: The random part of a delay.
        is_retriable: Takes an exception, and returns True if another call may help. None: any may,
            and at once.

    Raises:
        ValueError: `factor` is below 1, or `jitter` is not.
    """
    if factor < 1:
        raise ValueError(f"factor must be >= 1; was {factor:f}")
    if jitter >= 1:
        raise ValueError(f"jitter must be < 1; was {jitter:f}")

    def delays() -> Iterator[float]:
        delay = initial_delay
        while delay <= max_delay:
            yield delay * random.uniform(1 - jitter, 1 + jitter)
            delay *= factor

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def retried(*args: Any, **kwargs: Any) -> Any:
            for delay in delays():
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    if is_retriable is None:
                        continue
                    if not is_retriable(error):
                        raise
                    time.sleep(delay)
            return function(*args, **kwargs)

        return retried

    return decorated


@retry(1.0, 16.0, is_retriable=lambda error: getattr(error, "errno", None) == errno.ETIMEDOUT)
def urlretrieve_with_retry(url: str, filename: str | None = None) -> Any:
    """`urllib.request.urlretrieve`, up to six times if a connection times out."""
    return urllib.request.urlretrieve(url, filename)


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of `filename` in `work_directory`, loaded from `source_url` if it is not there."""
    tf.io.gfile.makedirs(work_directory)
    path = os.path.join(work_directory, filename)
    if not tf.io.gfile.exists(path):
        with urllib.request.urlopen(source_url) as source, tf.io.gfile.GFile(path, "wb") as file:
            file.write(source.read())
    return path


def extract_images(f: Any) -> np.ndarray:
    """The images of an open gzipped file, uint8 of shape (images, rows, columns, 1).

    Raises:
        ValueError: It is no file of images.
    """
    sizes, values = _extract(f, _IMAGES, "image", dimensions=3)
    return values.reshape(*sizes, 1)


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = _CLASSES) -> np.ndarray:
    """The labels of an open gzipped file: uint8 of shape (labels,), or float64 (labels, classes).

    Raises:
        ValueError: It is no file of labels.
    """
    _, values = _extract(f, _LABELS, "label", dimensions=1)
    return dense_to_one_hot(values, num_classes) if one_hot else values


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """Rows with a one at the place of each label, float64."""
    return cast(np.ndarray, np.eye(num_classes)[labels_dense.ravel()])


class DataSet:
    """Images and labels, given out in batches.

    As in TF 1.15 a new DataSet seeds NumPy's global generator: with `seed`, or with the graph's.

    Args:
        images: uint8 of shape (examples, rows, columns, 1).
        labels: One row for each image.
        fake_data: True if batches are made up; then images and labels are ignored.
        one_hot: True if made-up labels are one-hot.
        dtype: tf.uint8, or tf.float32 for pixels from 0 to 1.
        reshape: True if an image becomes a row of pixels.
        seed: The seed of the order of batches.

    Raises:
        TypeError: Another dtype.
        ValueError: There are not as many labels as images.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = tf.float32,
        reshape: bool = True,
        seed: int | None = None,
    ):
        graph_seed, op_seed = tf.compat.v1.get_seed(seed)
        patches.noted("digits")
        np.random.seed(graph_seed if seed is None else op_seed)
        dtype = tf.as_dtype(dtype).base_dtype
        if dtype not in (tf.uint8, tf.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self.one_hot = one_hot
        if not fake_data:
            if len(images) != len(labels):
                raise ValueError(f"There are {len(images)} images and {len(labels)} labels.")
            if reshape:
                images = images.reshape(len(images), int(np.prod(images.shape[1:])))
            if dtype == tf.float32:
                images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self._images, self._labels = images, labels
        self._num_examples = 10000 if fake_data else len(images)
        self._epochs_completed = self._index_in_epoch = 0

    @property
    def images(self) -> Any:
        """All images, in the order of this epoch."""
        return self._images

    @property
    def labels(self) -> Any:
        """All labels, in the order of this epoch."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """The number of examples."""
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        """The number of times that all examples were given out."""
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> Any:
        """The next images and labels; where an epoch ends, the batch goes on in the next one."""
        if fake_data:
            label = [1] + [0] * (_CLASSES - 1) if self.one_hot else 0
            return [[1] * _PIXELS for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._index_in_epoch
        if self._epochs_completed == 0 and start == 0 and shuffle:
            self._shuffle()
        end = start + batch_size
        if end <= self._num_examples:
            self._index_in_epoch = end
            return self._images[start:end], self._labels[start:end]
        rest = self._images[start:], self._labels[start:]
        self._epochs_completed += 1
        if shuffle:
            self._shuffle()
        self._index_in_epoch = end = end - self._num_examples
        more = self._images[:end], self._labels[:end]
        return tuple(np.concatenate(parts, axis=0) for parts in zip(rest, more, strict=True))

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        np.random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = tf.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = DEFAULT_SOURCE_URL,
) -> Datasets:
    """MNIST's four gzipped files in `train_dir`, loaded from `source_url` where they are not there.

    Returns:
        `train`, `validation` (the first `validation_size` of the training images) and `test`.

    Raises:
        ValueError: There are fewer training images than `validation_size`.
    """
    options: dict[str, Any] = {"dtype": dtype, "seed": seed}
    if fake_data:
        made_up = [DataSet([], [], fake_data=True, one_hot=one_hot, **options) for _ in range(3)]
        return Datasets(*made_up)

    def read(name: str, extract: Any) -> np.ndarray:
        url = (source_url or DEFAULT_SOURCE_URL) + name
        with tf.io.gfile.GFile(maybe_download(name, train_dir, url), "rb") as file:
            return cast(np.ndarray, extract(file))

    def labels_of(file: Any) -> np.ndarray:
        return extract_labels(file, one_hot=one_hot)

    images = read("train-images-idx3-ubyte.gz", extract_images)
    labels = read("train-labels-idx1-ubyte.gz", labels_of)
    test = read("t10k-images-idx3-ubyte.gz", extract_images)
    test_labels = read("t10k-labels-idx1-ubyte.gz", labels_of)
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            f"Validation size should be between 0 and {len(images)}. Received: {validation_size}."
        )
    options["reshape"] = reshape
    return Datasets(
        train=DataSet(images[validation_size:], labels[validation_size:], **options),
        validation=DataSet(images[:validation_size], labels[:validation_size], **options),
        test=DataSet(test, test_labels, **options),
    )


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """`read_data_sets(train_dir)`."""
    return read_data_sets(train_dir)


def _extract(f: Any, magic: int, what: str, dimensions: int) -> tuple[list[int], np.ndarray]:
    """The sizes and the bytes of an IDX file."""
    name = os.fspath(getattr(f, "name", "?"))
    print("Extracting", name)  # noqa: T201 as it did
    with gzip.GzipFile(fileobj=f) as unpacked:
        begins_with = int.from_bytes(unpacked.read(4), "big")
        if begins_with != magic:
            raise ValueError(f"Invalid magic number {begins_with} in MNIST {what} file: {name}")
        sizes = np.frombuffer(unpacked.read(4 * dimensions), ">u4").tolist()
        return sizes, np.frombuffer(unpacked.read(int(np.prod(sizes))), np.uint8)
