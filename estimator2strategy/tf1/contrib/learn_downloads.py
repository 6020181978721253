"""Result tuples of `tf.contrib.learn.datasets` of TF 1.15, and the download of its files."""

from __future__ import annotations

import collections
import os
import urllib.request

import tensorflow as tf

Dataset = collections.namedtuple("Dataset", ("data", "target"))
Datasets = collections.namedtuple("Datasets", ("train", "validation", "test"))


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of `filename` in `work_directory`, loaded from `source_url` if it is not there."""
    tf.io.gfile.makedirs(work_directory)
    path = os.path.join(work_directory, filename)
    if not tf.io.gfile.exists(path):
        with urllib.request.urlopen(source_url) as source, tf.io.gfile.GFile(path, "wb") as file:
            file.write(source.read())
    return path
