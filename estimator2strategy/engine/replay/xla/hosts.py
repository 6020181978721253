"""Several hosts that run one program: what they tell each other between launches.

All of them must call each function here at the same place of the program. Only public names of JAX
are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils


def of_each(mine: Sequence[int]) -> np.ndarray:
    """The numbers of each host: [hosts, numbers]."""
    with jax.enable_x64(True):
        found: np.ndarray = multihost_utils.process_allgather(np.array(mine, np.int64))
    return found


def texts(mine: bytes) -> list[bytes]:
    """The text of each host."""
    lengths = of_each([len(mine)])[:, 0]
    padded = np.frombuffer(mine.ljust(max(int(max(lengths)), 1), b"\0"), np.uint8)
    rows = multihost_utils.process_allgather(padded.astype(np.int32))
    return [bytes(row[:length].astype(np.uint8)) for row, length in zip(rows, lengths, strict=True)]


def of_first(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The first host's arrays; all must have the same shapes."""
    with jax.enable_x64(True):
        shared: Any = multihost_utils.broadcast_one_to_all(list(arrays))
    return list(map(np.asarray, shared))
