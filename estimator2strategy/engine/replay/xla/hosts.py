"""Several hosts that run one program: what they tell each other between launches.

All of them must call each function here at the same place of the program. Only public names of JAX
are used.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from estimator2strategy.errors import DeviceError

# What hosts tell each other has one size, so that those at different places find out.
_NUMBERS = 8


def of_each(what: str, mine: Sequence[int]) -> np.ndarray:
    """The numbers of each host.

    Args:
        what: Says what they are.
        mine: This host's; a few.

    Returns:
        [hosts, numbers], int64.

    Raises:
        DeviceError: Another host tells something else.
    """
    told = np.zeros(_NUMBERS, np.int64)
    told[0], told[1 : len(mine) + 1] = zlib.crc32(what.encode()), mine
    with jax.enable_x64(True):
        gathered: np.ndarray = multihost_utils.process_allgather(told)
    others = np.flatnonzero(gathered[:, 0] != told[0])
    if len(others):
        raise DeviceError(
            f"The hosts are at different places of the program: this one is at {what!r}, host "
            f"{', '.join(map(str, others))} is elsewhere. All must call train and evaluate in the "
            "same order, and hooks must end training at the same step in all."
        )
    return gathered[:, 1 : len(mine) + 1]


def texts(mine: bytes) -> list[bytes]:
    """The text of each host."""
    lengths = of_each("a text", [len(mine)])[:, 0]
    padded = np.frombuffer(mine.ljust(max(int(max(lengths)), 1), b"\0"), np.uint8)
    rows = multihost_utils.process_allgather(padded.astype(np.int32))
    return [bytes(row[:length].astype(np.uint8)) for row, length in zip(rows, lengths, strict=True)]


def of_first(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The first host's arrays; all must have the same shapes."""
    with jax.enable_x64(True):
        shared: Any = multihost_utils.broadcast_one_to_all(list(arrays))
    return list(map(np.asarray, shared))
