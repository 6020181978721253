"""Finds the cut of a TFRecord file that ends inside the header of a record; unpacks such files.

TensorFlow takes such a cut for the end of the file, in all its versions: the examples behind it are
missing, and nobody says so. (A cut inside of an example is an error of its own;
`findings/tfrecord_cut_in_a_header.sh`.)

    header: [8 bytes: length][4 bytes: masked CRC32C of the length], then length + 4 bytes

The last header is looked for from the end of the file, so that little is read of large ones. What
begins with a header is a file of records.

A GZIP file may have several members, one behind the other (`cat a.gz b.gz`). TensorFlow 1.15 read
the first alone; TensorFlow 2 reads all. Of a ZLIB file both read the first stream alone.
"""

from __future__ import annotations

import functools
import struct
import zlib
from typing import Any

import numpy as np

HEADER = 12
_AROUND = HEADER + 4  # bytes of a record that are not its data
# How much of a file's end is looked at, at first and at most.
_FIRST_LOOK, _LAST_LOOK = 1 << 14, 1 << 26
_CHUNK = 1 << 20
# The formats, as arguments of zlib's `decompressobj`.
_WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}
_GZIP_MAGIC = b"\x1f\x8b"


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


def packed_as(head: bytes) -> str:
    """Returns "GZIP", "ZLIB" or "", for the first bytes of a file."""
    if head[:2] == _GZIP_MAGIC:
        return "GZIP"
    # RFC 1950: the method is 8, and the first two bytes are a multiple of 31.
    is_zlib = len(head) > 1 and head[0] & 0x8F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    return "ZLIB" if is_zlib else ""


class Unpacked:
    """The data of a compressed file; `read` and `seek` go forwards alone.

    Args:
        file: The compressed file, at its start.
        kind: "GZIP" or "ZLIB".
        most: The number of bytes that are read of it; the data ends there.

    Attributes:
        whole: True once the data has been read to its end.
        cut: True once the file has ended in the middle of its data.
        behind: None while nothing follows the first member; then "GZIP" or "ZLIB" if that is
            another one, and "?" if it is something else.
    """

    def __init__(self, file: Any, kind: str, most: int):
        self._file, self._kind, self._left = file, kind, most
        self._inflater = zlib.decompressobj(_WINDOW_BITS[kind])
        self._packed = b""
        self._data, self._offset = b"", 0
        self._at = 0
        self.whole = self.cut = False
        self.behind: str | None = None

    def read(self, size: int) -> bytes:
        """Returns the next `size` bytes, or as many as there are."""
        parts = []
        while size:
            if self._offset == len(self._data):
                self._data, self._offset = self.read_some(), 0
            part = self._data[self._offset : self._offset + size]
            if not part:
                break
            parts.append(part)
            size -= len(part)
            self._offset += len(part)
            self._at += len(part)
        return b"".join(parts)

    def seek(self, to: int) -> None:
        """Leaves out what is before `to`, a place behind that of the last read."""
        while to > self._at and self.read(min(to - self._at, _CHUNK)):
            pass

    def read_some(self) -> bytes:
        """Returns the next bytes, a MiB at most; none at the end.

        Raises:
            zlib.error: The file is damaged.
        """
        while not self.whole:
            if self._inflater.eof and not self._next_member():
                self.whole = True
                break
            if not self._packed and not self._read_packed():
                self.cut = self._left > 0
                break
            data = self._inflater.decompress(self._packed, _CHUNK)
            self._packed = self._inflater.unconsumed_tail
            if data:
                return data
        return b""

    def _next_member(self) -> bool:
        self._packed = self._inflater.unused_data
        if not self._packed and not self._read_packed():
            return False
        is_gzip = self._packed[:2] == _GZIP_MAGIC
        self.behind = self.behind or (self._kind if self._kind == "ZLIB" or is_gzip else "?")
        self._inflater = zlib.decompressobj(_WINDOW_BITS[self._kind])
        return self._kind == "GZIP" and is_gzip

    def _read_packed(self) -> bool:
        self._packed = self._file.read(min(_CHUNK, self._left))
        self._left -= len(self._packed)
        return bool(self._packed)
