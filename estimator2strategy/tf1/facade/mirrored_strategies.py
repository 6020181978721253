"""`MirroredStrategy` as programs of TF 1.15 make it: in graph mode, on GPUs that may not be there.

Today's strategy adds up over several devices by collectives. Those that it makes in graph mode
cannot be traced in functions, in which steps run here, so these are made outside of it. And
collectives wait for ever for a GPU that is not there. TF 1.15 placed such a replica on the CPU, and
added up on one device unless all were GPUs; so do these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.worlds import modern_world


def _sums(devices: Sequence[str] | None, chosen: Any) -> Any:
    """Returns the object that adds up gradients; None leaves the choice to TensorFlow."""
    if chosen is not None:
        return chosen
    asked = set(map(_device, devices or ()))
    missing = asked - {_device(device.name) for device in tf.config.list_logical_devices()}
    if missing:
        tf.compat.v1.logging.warning(
            "MirroredStrategy: this machine has no %s. The CPU takes the place of each.",
            ", ".join(f"{kind}:{index}" for kind, index in sorted(missing)),
        )
    is_all_gpus = all(kind == "GPU" for kind, _ in asked)
    return None if is_all_gpus and not missing else tf.distribute.ReductionToOneDevice()


def _device(name: str) -> tuple[str, int]:
    spec = tf.DeviceSpec.from_string(name if name.startswith("/") else f"/{name}")
    return spec.device_type, spec.device_index or 0


class MirroredStrategyV1(tf.compat.v1.distribute.MirroredStrategy):
    """`tf.distribute.MirroredStrategy` of TF 1.15.

    Args:
        devices: Names of devices; all GPUs by default, or the CPU.
        cross_device_ops: The object that adds up gradients.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None):
        with modern_world():
            super().__init__(devices, _sums(devices, cross_device_ops))


class MirroredStrategyV2(tf.distribute.MirroredStrategy):
    """`tf.compat.v2.distribute.MirroredStrategy`; see that of V1."""

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None):
        with modern_world():
            super().__init__(devices, _sums(devices, cross_device_ops))
