"""An advisory lock on a folder, or a file: nothing is added, and it goes with its process.

    lock = FolderLock.of_folder(folder)
    ...
    lock.release()

A process that is killed has released it.
"""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

# Descriptors with a lock on them. A forked process must not keep its parent's lock alive.
_held: dict[int, str] = {}

# File systems whose locks every process that sees their files takes part in.
_OF_ONE_MACHINE = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs"}
)
# Network file systems -> the option with which they have one lock for all machines.
_SHARED = {"nfs": "local_lock=none", "nfs4": "local_lock=none", "lustre": "flock"}


def _let_go_of_the_parents_locks() -> None:
    while _held:
        os.close(_held.popitem()[0])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_of_the_parents_locks)


class FolderLock:
    """The lock of a folder, held by this process.

    Attributes:
        folder: The folder, as it was named.
    """

    def __init__(self, folder: str, descriptor: int):
        self.folder = folder
        self._descriptor = descriptor
        _held[descriptor] = folder

    @classmethod
    def of_folder(cls, folder: str | os.PathLike[str]) -> FolderLock | None:
        """The lock; None where the file system has no locks.

        Raises:
            BlockingIOError: Another process, or another part of this one, holds it.
            FileNotFoundError: There is no such folder.
        """
        if fcntl is None:
            return None
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:
            os.close(descriptor)
            return None
        return cls(os.fspath(folder), descriptor)

    def is_of(self, folder: str | os.PathLike[str]) -> bool:
        """True if the path still leads to the folder that is locked."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(folder))
        except OSError:
            return False

    def release(self) -> None:
        if _held.pop(self._descriptor, None) is not None:
            os.close(self._descriptor)


def is_held(folder: str) -> bool:
    """True if this process holds the lock of a folder, by the name it was locked with."""
    return folder in _held.values()


def excludes_all(folder: str | os.PathLike[str]) -> bool:
    """True if a process on any machine that sees the folder would respect its lock.

    False where that is not known for certain: on FUSE, 9p and SMB, and outside of Linux.
    """
    mount = _mount_of(os.path.realpath(folder))
    if mount is None:
        return False
    kind, options = mount
    return kind in _OF_ONE_MACHINE or _SHARED.get(kind) in options


def _mount_of(path: str) -> tuple[str, frozenset[str]] | None:
    """(type of the file system, its options) of a path; None if that cannot be told."""
    try:
        lines = Path("/proc/self/mounts").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    best, found = -1, None
    for line in lines:
        fields = line.split(" ")
        point = _unescaped(fields[1])
        is_above = point == "/" or path == point or path.startswith(f"{point}/")
        if is_above and len(point) >= best:  # the last mount on a point hides those before it
            best, found = len(point), (fields[2], frozenset(fields[3].split(",")))
    return found


def _unescaped(point: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
