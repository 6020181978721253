"""Result tuples of `tf.contrib.learn.datasets` of TF 1.15, and the download of its files."""

from __future__ import annotations

import collections
import errno
import functools
import os
import random
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

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
