"""Opens regular files alone, up to a size: a FIFO has no end, and a device does things when opened.

Example:

    data = read_bytes("train.py", most=5_000_000)
"""

from __future__ import annotations

import errno
import os
import stat

# The largest files of Python that are read; the largest that people have written has 2 MB.
MOST_SOURCE = 5_000_000
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


class NotRegularError(OSError):
    """A path is no file that can be read to its end; `strerror` says what it is."""


def read_bytes(path: str | os.PathLike[str], most: int = MOST_SOURCE) -> bytes:
    """The content of a file.

    Args:
        path: The file, or a link to one.
        most: The largest size in bytes.

    Raises:
        NotRegularError: It is no regular file, or it is too large; it was not opened.
        OSError: It cannot be read.
    """
    problem = irregular(path, os.stat(path), most)
    if problem is None:
        # A file of a moment ago may be a FIFO now, which must not be waited for.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            problem = irregular(path, os.fstat(file.fileno()), most)
            data = b"" if problem else file.read(most + 1)
        if problem is None and len(data) <= most:
            return data
    raise NotRegularError(errno.EINVAL, problem or _too_large(most), os.fspath(path))


def irregular(path: str | os.PathLike[str], status: os.stat_result, most: int) -> str | None:
    """The reason why a file is not opened: "a link to a FIFO", "larger than 5 MB"; None: it may be.

    Args:
        path: The file, or a link to one.
        status: The result of its `os.stat`.
        most: The largest size in bytes.
    """
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        what = _KINDS.get(kind, "no regular file")
        return f"a link to {what}" if os.path.islink(path) else what
    return _too_large(most) if status.st_size > most else None


def _too_large(most: int) -> str:
    size = f"{most / 1e6:g} MB" if most < 1e9 else f"{most / 1e9:g} GB"
    return f"larger than {size}"


def unreadable(path: str | os.PathLike[str], error: OSError) -> str:
    """The reason why `os.stat` or `open` failed: "a link to nothing", "Permission denied"."""
    if os.path.islink(path):
        if isinstance(error, FileNotFoundError):
            return "a link to nothing"
        return f"a link that cannot be followed ({error.strerror})"
    return str(error.strerror or error)
