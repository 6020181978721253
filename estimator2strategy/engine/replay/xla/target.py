"""The devices of JAX that run a model, and how they do."""

from __future__ import annotations

import dataclasses
from typing import Any

from estimator2strategy.engine.replay.xla.precision import Precision
from estimator2strategy.errors import UnsupportedError


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
