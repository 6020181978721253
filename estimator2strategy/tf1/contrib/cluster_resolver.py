"""`tf.contrib.cluster_resolver` of TF 1.15, and what programs do with a TPU that they found."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_switches
from estimator2strategy.engine.runtime import devices
from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("cluster_resolver")


class TPUClusterResolver(tf.distribute.cluster_resolver.TPUClusterResolver):
    """Like TF 1.15's; the network is asked only for a TPU that has a name, and is not emulated.

    Args:
        tpu: Name or address, alone or in a list; empty: this machine.
        *args, **kwargs: As of `tf.distribute.cluster_resolver.TPUClusterResolver`.
    """

    def __new__(cls, tpu: Any = None, *args: Any, **kwargs: Any):
        devices.emulate_tpu_if_asked()
        if not _name(tpu) or devices.emulated_cores():
            return _LocalResolver()
        return super().__new__(cls)

    def __init__(self, tpu: Any = None, *args: Any, **kwargs: Any):
        super().__init__(_name(tpu), *args, **kwargs)


def _name(tpu: Any) -> str | None:
    return (tpu[0] if tpu else None) if isinstance(tpu, (list, tuple)) else tpu


class _LocalResolver:
    """Stands for the devices of this machine, whatever they are."""

    environment = ""
    rpc_layer = None
    task_id = None
    task_type = None

    def master(self, *unused: Any, **unused_kwargs: Any) -> str:
        return ""

    get_master = master

    def cluster_spec(self) -> None:
        return None

    def get_job_name(self) -> None:
        return None

    def num_accelerators(self, *unused: Any, **unused_kwargs: Any) -> dict[str, int]:
        real = len(tf.config.list_logical_devices("TPU"))
        return {"TPU": devices.emulated_cores() or real}


def connect_to_cluster(cluster_spec_or_resolver: Any, *args: Any, **kwargs: Any) -> None:
    """`tf.config.experimental_connect_to_cluster`, in graph mode too, as in TF 1.15.

    To this machine, emulated cores included, there is nothing to connect.
    """
    if not isinstance(cluster_spec_or_resolver, _LocalResolver):
        with _tf_switches.eager_mode():
            tf.config.experimental_connect_to_cluster(cluster_spec_or_resolver, *args, **kwargs)


def initialize_tpu_system(cluster_resolver: Any = None) -> Any:
    """`tf.tpu.experimental.initialize_tpu_system`, in graph mode too, as in TF 1.15.

    Returns:
        The topology of the TPU; None for this machine: an Estimator starts its TPU when it first
        uses one, and emulated cores need no start.
    """
    if cluster_resolver is None or isinstance(cluster_resolver, _LocalResolver):
        return None
    with _tf_switches.eager_mode():
        return tf.tpu.experimental.initialize_tpu_system(cluster_resolver)


def shutdown_tpu_system(cluster_resolver: Any = None) -> None:
    """`tf.tpu.experimental.shutdown_tpu_system`; this machine's TPU ends with the process."""
    if cluster_resolver is not None and not isinstance(cluster_resolver, _LocalResolver):
        with _tf_switches.eager_mode():
            tf.tpu.experimental.shutdown_tpu_system(cluster_resolver)
