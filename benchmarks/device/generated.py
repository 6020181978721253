"""Values that are made from their names: the same wherever they are made, and in no file."""

from __future__ import annotations

import zlib

import numpy as np


def value_of(name: str, shape: list[int], dtype: str) -> np.ndarray:
    """The initial value of a variable of BERT's: normal, or what its role asks for."""
    last = name.rpartition("/")[2]
    if last == "gamma":
        return np.ones(shape, dtype)
    if last in ("adam_m", "adam_v", "beta", "bias", "output_bias", "global_step"):
        return np.zeros(shape, dtype)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return (0.02 * rng.standard_normal(shape, np.float32)).astype(dtype)
