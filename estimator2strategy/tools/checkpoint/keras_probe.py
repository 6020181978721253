"""Reads a file of HDF5 to its end, as a program of its own: on some broken files HDF5 never ends.

Numbers that are stored one after the other, as Keras stores weights, are left to who reads the file
for its values: HDF5 only copies them.

python keras_probe.py x.weights.h5      # 0: it can be read; 1: it cannot, and it says why
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

# The time for a file: so many seconds, and one more for every so many bytes.
_SECONDS, _BYTES_A_SECOND = 60, 20_000_000


def problem(path: str, seconds: float = _SECONDS) -> str | None:
    """The reason why a file cannot be read, found out by another process; None: it can be.

    Args:
        path: The file.
        seconds: The time that is given to it, beside the time for its size.
    """
    limit = seconds + os.path.getsize(path) / _BYTES_A_SECOND
    command = [sys.executable, os.path.abspath(__file__), path]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"HDF5 does not come to its end within {limit:.0f} s"
    if done.returncode < 0:
        return f"HDF5 ends by signal {-done.returncode}"
    return done.stdout.decode(errors="replace").strip() if done.returncode else None


def _read(group: Any, depth: int = 0) -> None:
    """Reads attributes and data; links are left to who opens the file here."""
    import h5py

    dict(group.attrs)
    for name in group:
        if depth < 64 and isinstance(group.get(name, getlink=True), h5py.HardLink):
            member = group[name]
            if isinstance(member, h5py.Group):
                _read(member, depth + 1)
            elif isinstance(member, h5py.Dataset) and not _is_left_alone(member):
                member[()]


def _is_left_alone(data: Any) -> bool:
    """True for data elsewhere, and for numbers in one piece: no chunks, compression, pointers."""
    if data.external or data.is_virtual:
        return True
    begin = data.id.get_offset()  # None for what is stored in any other way
    if begin is None or data.dtype.hasobject:
        return False
    fits: bool = begin + data.id.get_storage_size() <= data.file.id.get_filesize()
    return fits


def main(path: str) -> int:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            _read(file)
    except Exception as error:  # of many kinds
        said = str(error).splitlines() or [type(error).__name__]
        sys.stdout.buffer.write(said[0].encode(errors="backslashreplace"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
