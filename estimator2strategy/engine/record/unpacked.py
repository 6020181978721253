"""The data of a GZIP or ZLIB file, from its start to its end, as TensorFlow reads it.

A GZIP file may have several members, one behind the other (`cat a.gz b.gz`). TensorFlow 1.15 read
the first alone; TensorFlow 2 reads all. Of a ZLIB file both read the first stream alone.
"""

from __future__ import annotations

import zlib
from typing import Any

_CHUNK = 1 << 20
# The formats, as arguments of zlib's `decompressobj`.
_WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}
_GZIP_MAGIC = b"\x1f\x8b"


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
