"""How a user writes down the TPU cores to emulate: `8`, or `2x4` for two hosts of four cores each.

The variable E2S_EMULATE_TPU_CORES and `e2s run --emulate-tpu-cores` take it; without TensorFlow.
"""

from __future__ import annotations

import re

_CORES = re.compile(r"(?:(\d+)x)?(\d+)")


def hosts_and_cores(text: str) -> tuple[int, int] | None:
    """Returns the number of hosts and that of the cores of each; None if `text` is no such thing.

    Either may be zero.
    """
    match = _CORES.fullmatch(text)
    return (int(match[1] or 1), int(match[2])) if match else None
