"""Says that a TFRecord file is cut inside the header of a record.

TensorFlow takes such a cut for the end of the file, in all its versions: the examples behind it are
missing, and nobody says so. (A cut inside of an example is an error of its own.)

    header: [8 bytes: length][4 bytes: masked CRC32C of the length], then length + 4 bytes

The last header is looked for from the end of the file, so that little is read of large ones. Only
local files whose names the graph of input_fn knows are looked at; what begins with a header is a
file of records.
"""

from __future__ import annotations

import functools
import glob
import os
import struct
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.user_code import user_line
from estimator2strategy.engine.wrong_argument import wrong_argument

_HEADER = 12
_AROUND = _HEADER + 4  # bytes of a record that are not its data
# How much of a file's end is looked at, at first and at most.
_FIRST_LOOK, _LAST_LOOK = 1 << 14, 1 << 26
# A constant of more strings holds examples, and no names of files.
_MOST_NAMES = 100_000
_MOST_PATTERNS = 100
_LONGEST_NAME = 4096


def warn_of_cut_records(graph: tf.Graph) -> None:
    """Warns of each TFRecord file that an input reads and that is cut inside a header.

    Args:
        graph: That of input_fn, which has been called.
    """
    if not any("Dataset" in op.type for op in graph.get_operations()):
        return
    for path, op in _named_files(graph):
        try:
            left = _cut_bytes(path, os.path.getsize(path), os.path.getmtime(path))
        except OSError:
            continue  # the input itself will say so
        if left:
            tf.compat.v1.logging.warn(
                str(
                    wrong_argument(
                        f"input_fn reads a TFRecord file that is truncated: its last {left} "
                        f"byte(s) are the beginning of a header, expected {_HEADER}. It ends "
                        "there as if it were whole",
                        path,
                        "Write the file again, or leave it out: the examples behind are missing.",
                        at=user_line(op.traceback),
                    )
                )
            )


def _named_files(graph: tf.Graph) -> Iterator[tuple[str, tf.Operation]]:
    """Each local file that a string constant names, as a path or a pattern, and the constant."""
    seen: set[str] = set()
    for op in graph.get_operations():
        if op.type != "Const" or op.outputs[0].dtype != tf.string:
            continue
        if (op.outputs[0].shape.num_elements() or 0) > _MOST_NAMES:
            continue
        names = tf.make_ndarray(op.get_attr("value")).ravel()
        for name in names:
            for path in _found(os.fsdecode(name), len(names) <= _MOST_PATTERNS):
                if path not in seen:
                    seen.add(path)
                    yield path, op


def _found(name: str, may_be_pattern: bool) -> list[str]:
    if not name or len(name) > _LONGEST_NAME or "://" in name or "\0" in name:
        return []
    is_pattern = may_be_pattern and any(sign in name for sign in "*?[")
    paths = glob.glob(name) if is_pattern else [name]
    return [path for path in paths if os.path.isfile(path)]


@functools.cache
def _cut_bytes(path: str, size: int, modified: float) -> int:
    """Returns the length of an incomplete header at a file's end; 0 also if it has no records."""
    del modified
    if size <= _HEADER:
        return 0
    with open(path, "rb") as file:
        if not _is_header(file.read(_HEADER)):
            return 0
        look = _FIRST_LOOK
        while True:
            ends = _ends_of_records(file, size, look)
            if size in ends:
                return 0
            if ends or look >= min(size, _LAST_LOOK):
                break
            look *= 8
        # A record may hold the bytes of a file of records: only reading from the start is sure.
        return _walk(file, size) if ends else 0


def _ends_of_records(file, size: int, look: int) -> set[int]:
    """Returns the ends of records that begin in the last `look` bytes and end near the file's."""
    start = max(0, size - look)
    file.seek(start)
    data = file.read(size - start)
    count = len(data) - _HEADER + 1
    if count <= 0:
        return set()
    lengths = np.ndarray((count,), "<u8", data, strides=(1,))
    ends = lengths + np.arange(start + _AROUND, start + _AROUND + count, dtype="u8")
    # A length near 2**64 wraps around: it is none.
    near = (ends <= size) & (ends > size - _HEADER) & (lengths < size)
    return {
        int(ends[i]) for i in np.flatnonzero(near) if _is_header(data[int(i) : int(i) + _HEADER])
    }


def _walk(file, size: int) -> int:
    """Returns the length of a cut header, as `_cut_bytes` does; reads from record to record."""
    at = 0
    while size - at >= _HEADER:
        file.seek(at)
        header = file.read(_HEADER)
        if not _is_header(header):
            return 0  # an error of its own
        at += _AROUND + struct.unpack_from("<Q", header)[0]
    return max(0, size - at)


def _is_header(header: bytes) -> bool:
    if len(header) < _HEADER:
        return False
    crc = _crc32c(header[:8])
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    return masked == struct.unpack_from("<I", header, 8)[0]


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _crc_table()[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@functools.cache
def _crc_table() -> tuple[int, ...]:
    """Returns the table of CRC32C: the polynomial of Castagnoli, reflected."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)
