"""The devices of JAX that run a model, and how they do."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from estimator2strategy.errors import UnsupportedError


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


class NotUnderJaxError(UnsupportedError):
    """JAX cannot run a program, of which no step has run: another runtime may."""


@dataclasses.dataclass(frozen=True)
class JaxTarget:
    """Devices of JAX.

    Attributes:
        devices: The devices (`jax.Device`), one for each replica.
        precision: The precision of float32 products on them.
        checks: True if steps watch for failures that XLA does not report.
    """

    devices: tuple[Any, ...]
    precision: Precision = Precision.DEFAULT
    checks: bool = False

    @property
    def of_several_hosts(self) -> bool:
        """True if other processes have some of the devices."""
        return len({device.process_index for device in self.devices}) > 1
