"""The graph of a training with its shapes, and as text: `graph.pbtxt`.

Text of data is slow to make: a fifth of the time of a small training, were it made anew in each of
the trainings of a loop. So a file stays that was written for a graph with the same fingerprint, and
the nodes of a graph without much data are kept for it, serialized: as messages they take six times
as much memory.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, NamedTuple

import tensorflow as tf
from google.protobuf import text_format

from estimator2strategy.engine.replay.runs import Runs

_LARGE_NODE = 2**16  # bytes


class _File(NamedTuple):
    """The identity of a written file: to write the file again changes it."""

    device: int
    inode: int
    size: int
    modified_ns: int


_MOST_KEPT = 2**24  # bytes

# Recordings share Runs where their graphs are the same; see `ReplayCache`.
_written: weakref.WeakKeyDictionary[Runs, dict[str, _File | None]] = weakref.WeakKeyDictionary()

_with_shapes: weakref.WeakKeyDictionary[Runs, bytes] = weakref.WeakKeyDictionary()


def with_shapes(graph: tf.Graph, runs: Runs | None) -> tf.compat.v1.GraphDef:
    """The nodes of a graph with the shapes of their results.

    Args:
        runs: The runs of the graph; None: it is in a Session.
    """
    if runs is not None and runs in _with_shapes:
        return tf.compat.v1.GraphDef.FromString(_with_shapes[runs])
    graph_def = graph.as_graph_def(add_shapes=True)
    if runs is not None and graph_def.ByteSize() < _MOST_KEPT:
        _with_shapes[runs] = graph_def.SerializeToString()
    return graph_def


def is_written(runs: Runs | None, folder: str) -> bool:
    """True if the file in `folder` is, untouched, the one that was written for `runs`."""
    path = _path(folder)
    file = _file(path)
    return runs is not None and file is not None and _written.get(runs, {}).get(path) == file


def write(graph_def: tf.compat.v1.GraphDef, folder: str, runs: Runs | None = None) -> None:
    """Writes the file, as tf.io.write_graph, which TensorFlow 2.20 cannot do with protobuf 7.

    Node by node: the text of data in a graph is four times as large as they are.

    Args:
        runs: The runs of the graph; None: it is in a Session.
    """
    path = _path(folder)
    tf.io.gfile.makedirs(folder)
    half = unfinished(folder)
    with tf.io.gfile.GFile(half, "w") as file:
        for node in graph_def.node:
            # `text_format` sorts attributes, and takes 10 bytes for each byte of data meanwhile.
            text_of: Any = str if node.ByteSize() > _LARGE_NODE else text_format.MessageToString
            file.write(text_of(tf.compat.v1.GraphDef(node=[node])))
        fields = {field.name: value for field, value in graph_def.ListFields()}
        rest = tf.compat.v1.GraphDef(**{name: fields[name] for name in fields if name != "node"})
        file.write(text_format.MessageToString(rest))
    written = _file(half)
    tf.io.gfile.rename(half, path, overwrite=True)
    if runs is not None:
        _written.setdefault(runs, {})[path] = written


def unfinished(folder: str) -> str:
    """The path at which the file is until it is complete."""
    return f"{_path(folder)}.tmp"


def _path(folder: str) -> str:
    return os.path.join(folder, "graph.pbtxt")


def _file(path: str) -> _File | None:
    """Returns the identity of a file; None if this machine has no such file."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return _File(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
