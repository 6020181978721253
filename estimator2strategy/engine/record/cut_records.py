"""Finds the cut of a TFRecord file that ends inside the header of a record.

TensorFlow takes such a cut for the end of the file, in all its versions: the examples behind it are
missing, and nobody says so. (A cut inside of an example is an error of its own;
`findings/tfrecord_cut_in_a_header.sh`.)

    header: [8 bytes: length][4 bytes: masked CRC32C of the length], then length + 4 bytes

The last header is looked for from the end of the file, so that little is read of large ones. What
begins with a header is a file of records.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np

HEADER = 12
_AROUND = HEADER + 4  # bytes of a record that are not its data
# How much of a file's end is looked at, at first and at most.
_FIRST_LOOK, _LAST_LOOK = 1 << 14, 1 << 26


def is_header(head: bytes) -> bool:
    """True for the header of a record."""
    if len(head) < HEADER:
        return False
    crc = _crc32c(head[:8])
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    return bool(masked == struct.unpack_from("<I", head, 8)[0])


def cut_bytes(file: Any, size: int) -> int:
    """Returns the length of an incomplete header at a file's end; 0 also if it has no records."""
    if size <= HEADER or not is_header(file.read(HEADER)):
        return 0
    look = _FIRST_LOOK
    while True:
        start = max(0, size - look)
        file.seek(start)
        ends = _ends_of_records(file.read(size - start), start)
        if size in ends:
            return 0
        if ends or look >= min(size, _LAST_LOOK):
            break
        look *= 8
    # A record may hold the bytes of a file of records: only reading from the start is sure.
    return walk(file, size) if ends else 0


class Tail:
    """Looks for a cut in data that passes by, from its start to its end."""

    def __init__(self) -> None:
        self.head, self._tail, self.size = b"", bytearray(), 0

    def add(self, data: bytes) -> None:
        """Takes the next bytes."""
        self.head += data[: HEADER - len(self.head)]
        self.size += len(data)
        self._tail += data
        if len(self._tail) > 2 * _LAST_LOOK:
            del self._tail[:-_LAST_LOOK]

    def may_be_cut(self) -> bool:
        """True if these are records, and none is seen to end where they do."""
        if not is_header(self.head):
            return False
        last = bytes(self._tail[-_FIRST_LOOK:]), bytes(self._tail)
        return all(self.size not in _ends_of_records(d, self.size - len(d)) for d in last)


def _ends_of_records(data: bytes, start: int) -> set[int]:
    """Returns the ends of records that end near a file's end.

    Args:
        data: The end of the file.
        start: Its place in the file.
    """
    count, size = len(data) - HEADER + 1, start + len(data)
    if count <= 0:
        return set()
    lengths = np.ndarray((count,), "<u8", data, strides=(1,))
    ends = lengths + np.arange(start + _AROUND, start + _AROUND + count, dtype="u8")
    # A length near 2**64 wraps around: it is none.
    near = (ends <= size) & (ends > size - HEADER) & (lengths < size)
    return {int(ends[i]) for i in np.flatnonzero(near) if is_header(data[int(i) : int(i) + HEADER])}


def walk(file: Any, size: int) -> int:
    """Returns what `cut_bytes` does; reads from record to record, forwards alone."""
    at, header = 0, b""
    while size - at >= HEADER:
        file.seek(at)
        header = file.read(HEADER)
        at += _AROUND + struct.unpack_from("<Q", header)[0]
    # One wrong length leads to no header any more: that of the last one is checked for all.
    return max(0, size - at) if is_header(header) else 0


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
