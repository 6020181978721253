"""The precision of float32 products on devices that have a faster one."""

from __future__ import annotations

import enum


class Precision(enum.Enum):
    """How a TPU or a GPU multiplies matrices of float32, and convolves them.

    DEFAULT: as the device likes: in bfloat16 on a TPU, in TF32 on a GPU.
    HIGH: in three passes of bfloat16 on a TPU, in TF32 on a GPU.
    HIGHEST: in float32, as a CPU does.
    BFLOAT16: factors are rounded to bfloat16, and summed in float32, on every device.
    """

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"
    BFLOAT16 = "bfloat16"
