"""The contents of a checkpoint of any format: entries, read one at a time."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import enum
import os
import re
from collections.abc import Iterable, Iterator

import numpy as np

from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.untrusted.printable import printable, printable_lines
from estimator2strategy.tools.untrusted.regular_files import irregular, unreadable


class Format(str, enum.Enum):
    """The writer of a checkpoint; the values are those of `--to`."""

    TF1 = "tf1"  # `tf.train.Saver`: tensors by name
    TF2 = "tf2"  # `tf.train.Checkpoint`: the same files, with a graph of objects
    KERAS = "keras"  # `.weights.h5`, `.keras`

    __str__ = str.__str__


@dataclasses.dataclass(frozen=True)
class Entry:
    """One tensor of a checkpoint.

    Attributes:
        key: Its name in the format.
        label: Its name for people, as `hidden/kernel` or `adam/hidden_kernel_momentum`; unique in
            its checkpoint. For TF1 the key itself.
        shape, dtype: Of the tensor; dtype as numpy names it.
    """

    key: str
    label: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class Store(abc.ABC):
    """A checkpoint that is read.

    Attributes:
        kind: Its writer.
        path: As it was opened.
        entries: In the order in which they were created, as far as that is known.
    """

    kind: Format
    path: str
    entries: list[Entry]

    @abc.abstractmethod
    def read(self, entry: Entry) -> np.ndarray:
        """The value of one entry."""

    def by_label(self) -> dict[str, Entry]:
        return {entry.label: entry for entry in self.entries}


def said(error: Exception) -> str:
    """The first line of an error's message, or its name; safe to print."""
    (line, *_) = str(error).splitlines() or [type(error).__name__]
    return printable_lines(line)[:500]


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Turns what readers of formats raise of broken files into a sentence.

    TensorFlow's and h5py's readers raise errors of many kinds; none of them is of the program.

    Raises:
        CheckpointError: The checkpoint at `path` cannot be read.
    """
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{printable(path)} cannot be read: {said(error)}") from error


def check_is_file(path: str) -> None:
    """Refuses what is no regular file: it is not opened.

    Raises:
        CheckpointError: It is a FIFO, a device or the like, or not there.
    """
    try:
        problem = irregular(path, os.stat(path), most=1 << 62)
    except (OSError, ValueError) as error:
        problem = unreadable(path, error) if isinstance(error, OSError) else str(error)
    if problem:
        raise CheckpointError(f"{printable(path)} cannot be read: it is {problem}")


def unique(entries: Iterable[Entry]) -> list[Entry]:
    """The entries, with their keys for labels where two have the same."""
    entries = list(entries)
    labels = [entry.label for entry in entries]
    return [
        dataclasses.replace(e, label=e.key) if labels.count(e.label) > 1 else e for e in entries
    ]


def natural(name: str) -> list[tuple[int, str | int]]:
    """A key to sort names with: conv2d, conv2d_1, ..., conv2d_10, as layers are numbered."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts]
