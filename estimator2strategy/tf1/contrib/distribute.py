"""`tf.contrib.distribute` of TF 1.15, for `RunConfig(train_distribute=...)`."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.contrib import names_of
from estimator2strategy.tf1.facade import strategies
from estimator2strategy.tf1.facade.strategies import MultiWorkerMirroredStrategyV1

_AUTO = tf.distribute.experimental.CollectiveCommunication.AUTO

__getattr__ = names_of("distribute", globals())


class MirroredStrategy(strategies.MirroredStrategyV2):
    """`tf.distribute.MirroredStrategy` with the arguments of the contrib version.

    Args:
        devices: Names of devices; all GPUs by default, or the CPU.
        num_gpus: In place of `devices`: the first so many GPUs.
        num_gpus_per_worker: Another name of `num_gpus`.
        cross_device_ops: The object that adds up gradients.
        auto_shard_dataset: Only for several workers, which are not supported here.
        cross_tower_ops: The older name of `cross_device_ops`.

    Raises:
        ValueError: Both `devices` and a number are given, or both numbers.
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: Any = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: Any = None,
    ):
        if num_gpus is not None and num_gpus_per_worker is not None:
            raise ValueError("You cannot specify both `num_gpus` and `num_gpus_per_worker`.")
        if auto_shard_dataset:
            raise UnsupportedError(
                "auto_shard_dataset=True divided files between workers; in one process there is "
                "one input. Leave it out, and use dataset.shard where there are several."
            )
        count = num_gpus if num_gpus_per_worker is None else num_gpus_per_worker
        if count is not None:
            if devices is not None:
                raise ValueError("Must only specify one of `devices` and `num_gpus`.")
            devices = [f"/gpu:{i}" for i in range(count)] if count else ["/cpu:0"]
        super().__init__(devices, cross_device_ops or cross_tower_ops)


class CollectiveAllReduceStrategy(MultiWorkerMirroredStrategyV1):
    """`tf.distribute.MultiWorkerMirroredStrategy` with the arguments of the contrib version.

    Args:
        num_gpus_per_worker: The number of GPUs that each process sees; it takes them all.
        communication: A `tf.distribute.experimental.CollectiveCommunication`.
    """

    def __init__(self, num_gpus_per_worker: int = 0, communication: Any = _AUTO):
        super().__init__(communication)
        gpus = sum("GPU" in device.upper() for device in self.extended.worker_devices)
        if gpus != num_gpus_per_worker:
            tf.compat.v1.logging.warn(
                "CollectiveAllReduceStrategy(num_gpus_per_worker=%d) takes the %d GPU(s) that this "
                "process sees. Set CUDA_VISIBLE_DEVICES to the ones that are meant.",
                num_gpus_per_worker,
                gpus,
            )


class DistributeConfig(
    collections.namedtuple(
        "DistributeConfig", ("train_distribute", "eval_distribute", "remote_cluster")
    )
):
    """`RunConfig(experimental_distribute=...)`: the strategies of a run in one object.

    Args:
        train_distribute: The strategy for training.
        eval_distribute: The strategy for evaluation.
        remote_cluster: Servers that one client drives; not supported.

    Raises:
        UnsupportedError: `remote_cluster` is given.
    """

    __slots__ = ()

    def __new__(
        cls, train_distribute: Any = None, eval_distribute: Any = None, remote_cluster: Any = None
    ) -> DistributeConfig:
        if remote_cluster is not None:
            raise UnsupportedError(
                "remote_cluster: one client that drives the servers of a cluster is not supported. "
                "Start the program in each process of the cluster, with its TF_CONFIG."
            )
        return super().__new__(cls, train_distribute, eval_distribute, None)


class OneDeviceStrategy(tf.distribute.OneDeviceStrategy):
    """`tf.distribute.OneDeviceStrategy`."""


def AllReduceCrossDeviceOps(  # noqa: N802
    all_reduce_alg: str = "nccl",
    num_packs: int = 1,
    agg_small_grads_max_bytes: int = 0,
    agg_small_grads_max_group: int = 10,
) -> Any:
    """The class of `tf.distribute` for an algorithm, "nccl" or "hierarchical_copy".

    Gradients are packed as `num_packs` says; TensorFlow no longer groups small ones by their size.

    Raises:
        ValueError: There is no such algorithm.
    """
    classes = {
        "nccl": tf.distribute.NcclAllReduce,
        "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
    }
    if all_reduce_alg not in classes:
        raise ValueError(
            f"all_reduce_alg must be one of {sorted(classes)}, not {all_reduce_alg!r}."
        )
    return classes[all_reduce_alg](num_packs=num_packs)
