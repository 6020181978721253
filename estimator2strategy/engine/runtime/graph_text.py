"""The graph of a training with its shapes, and as text: `graph.pbtxt`.

Text of data is slow to make: a fifth of the time of a small training, were it made anew in each of
the trainings of a loop. So a file stays that was written for a graph with the same fingerprint, and
the nodes of a graph without much data are kept for it, serialized: as messages they take six times
as much memory.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.replay.runs import Runs

_LARGE = 2**12  # bytes
_PIECE = 2**20  # bytes that are escaped at once
_MARK = b"<data %d>"


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

    Node by node: the text of data in a graph is up to four times as large as they are.

    Args:
        graph_def: Loses its data.
        runs: The runs of the graph; None: it is in a Session.
    """
    path = _path(folder)
    tf.io.gfile.makedirs(folder)
    half = unfinished(folder)
    with tf.io.gfile.GFile(half, "wb") as file:
        for piece in _text(graph_def):
            file.write(piece)
    written = _file(half)
    tf.io.gfile.rename(half, path, overwrite=True)
    if runs is not None:
        _written.setdefault(runs, {})[path] = written


def _text(graph_def: tf.compat.v1.GraphDef) -> Iterator[bytes]:
    for node in graph_def.node:
        data = _taken_out([node])
        yield from _with_data(_in_order(str(tf.compat.v1.GraphDef(node=[node]))), data)
    fields = {field.name: value for field, value in graph_def.ListFields()}
    rest = tf.compat.v1.GraphDef(**{name: fields[name] for name in fields if name != "node"})
    data = _taken_out(node for function in rest.library.function for node in function.node_def)
    yield from _with_data(str(rest), data)


def _in_order(text: str) -> str:
    """The text of one node, its attributes sorted by their names.

    protobuf's own `text_format` sorts them too, and took 1.0 s for 16,000 nodes where this takes
    a tenth of it. No text of a value has a line break.
    """
    start, end = "\n  attr {\n", "\n  }"
    head, *attrs = text.split(start)
    if not attrs:
        return text
    attrs[-1], close, tail = attrs[-1].partition(end)
    attrs[-1] += close
    return start.join([head, *sorted(attrs)]) + tail


def _taken_out(nodes: Iterable[Any]) -> list[bytes]:
    """Takes large data out of nodes, and leaves a `_MARK` of its place in the list."""
    data: list[bytes] = []
    for node in nodes:
        if node.op == "Const" and node.attr["value"].ByteSize() > _LARGE:
            tensor = node.attr["value"].tensor
            if len(tensor.tensor_content) > _LARGE:
                data.append(tensor.tensor_content)
                tensor.tensor_content = _MARK % (len(data) - 1)
    return data


def _with_data(text: str, data: Iterable[bytes]) -> Iterator[bytes]:
    """The text, in pieces, with the data that was taken out."""
    rest = text.encode()
    for i, values in enumerate(data):
        before, _, rest = rest.partition(b'tensor_content: "' + _MARK % i)
        yield before + b'tensor_content: "'
        yield from _escaped(values)
    yield rest


def _escaped(data: bytes) -> Iterator[bytes]:
    """Data as protobuf's text has it; protobuf prints byte by byte, and takes ten times as long."""
    text, used = _escapes()
    for start in range(0, len(data), _PIECE):
        values = np.frombuffer(data, np.uint8)[start : start + _PIECE]
        yield text.take(values).view(np.uint8)[used.take(values).view(np.bool_)].tobytes()


@functools.cache
def _escapes() -> tuple[np.ndarray, np.ndarray]:
    """For each byte: its text, filled up to four bytes, and which of these are its text."""
    short = {ord(c): f"\\{name}" for c, name in zip("\n\r\t\"'\\", "nrt\"'\\", strict=True)}
    plain = {value: chr(value) for value in range(0x20, 0x7F)}
    texts = [(plain | short).get(value, f"\\{value:03o}").encode() for value in range(256)]
    text = np.frombuffer(b"".join(t.ljust(4) for t in texts), np.uint32)
    used = np.array([[i < len(t) for i in range(4)] for t in texts])
    return text, used.view(np.uint32)[:, 0]


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
