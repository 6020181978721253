"""The division of a TPUEstimator's batches among hosts and cores.

`Deployment` holds the decisions of one mode; `TPUContext` is what legacy functions see of them, as
`params['context']`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.runtime.devices import Host, hosts
from estimator2strategy.engine.runtime.jax_devices import JaxReplicas
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.tpu_config import InputPipelineConfig

_BATCH_SIZE_ARGUMENT = {
    ModeKeys.TRAIN: "train_batch_size",
    ModeKeys.EVAL: "eval_batch_size",
    ModeKeys.PREDICT: "predict_batch_size",
}
_VERB = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}
_METHOD = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "evaluate", ModeKeys.PREDICT: "predict"}


@dataclasses.dataclass(frozen=True)
class Deployment:
    """The devices that one mode of a TPUEstimator runs on.

    Attributes:
        mode: A value of ModeKeys.
        batch_size: The global batch size, in examples. None: not given (CPU only).
        strategy: A strategy over the TPU cores; None: the host, as with `use_tpu=False`.
        pipeline: The way of calling input_fn; see `InputPipelineConfig`.
        device_assignment: The cores of each replica, where it has several.
        job: `TPUConfig.tpu_job_name`.

    Source: `_InternalTPUContext`, tensorflow_estimator 2.15 tpu_context.py.
    """

    mode: str
    batch_size: int | None
    strategy: tf.distribute.Strategy | None = None
    pipeline: int = InputPipelineConfig.PER_HOST_V1
    device_assignment: tf.tpu.experimental.DeviceAssignment | None = None
    job: str | None = None

    @property
    def on_host(self) -> bool:
        return self.strategy is None

    @property
    def num_replicas(self) -> int:
        return 1 if self.strategy is None else self.strategy.num_replicas_in_sync

    @functools.cached_property
    def hosts(self) -> tuple[Host, ...]:
        return hosts(self.strategy)

    @property
    def num_hosts(self) -> int:
        return len(self.hosts)

    @property
    def replicas_per_host(self) -> int:
        return self.num_replicas // self.num_hosts

    @property
    def feeding_hosts(self) -> tuple[Host, ...]:
        """The hosts that call input_fn, each with the replicas it does so for."""
        if self.broadcasts:
            return (Host(self.hosts[0].device, tuple(range(self.num_replicas))),)
        return self.hosts

    @property
    def here(self) -> int | None:
        """The number of this process's host; None: this process feeds all hosts."""
        if not isinstance(self.strategy, JaxReplicas) or self.num_hosts == 1:
            return None
        return self.strategy.here

    @property
    def broadcasts(self) -> bool:
        """True if one call of input_fn serves all hosts."""
        return self.pipeline in (InputPipelineConfig.BROADCAST, InputPipelineConfig.SLICED)

    @property
    def input_batch_size(self) -> int | None:
        """`params['batch_size']` of input_fn, in examples."""
        if self.on_host or self.broadcasts or self.batch_size is None:
            return self.batch_size
        per_core = (InputPipelineConfig.PER_SHARD_V1, InputPipelineConfig.PER_HOST_V2)
        parts = self.num_replicas if self.pipeline in per_core else self.num_hosts
        return self.batch_size // parts

    @property
    def model_batch_size(self) -> int | None:
        """`params['batch_size']` of model_fn, in examples."""
        whole = self.on_host or self.pipeline is InputPipelineConfig.BROADCAST
        if whole or self.batch_size is None:
            return self.batch_size
        return self.batch_size // self.num_replicas

    @property
    def invocations(self) -> int:
        """The number of calls of input_fn."""
        if self.broadcasts:
            return 1
        if self.pipeline is InputPipelineConfig.PER_SHARD_V1:
            return self.num_replicas
        return self.num_hosts

    def validate(self, num_shards: int | None, master: str | None = "") -> None:
        """Checks the configuration against the cores there are, before anything is built.

        Raises:
            ValueError: `num_shards` or a batch size does not fit the number of cores.
        """
        if self.on_host:
            return
        self._check_replicas_fit_hosts()
        if num_shards and num_shards != self.num_replicas:
            raise ValueError(
                "TPUConfig.num_shards is not set correctly. According to TPU system metadata for "
                f"Tensorflow master ({master}): num_replicas should be ({self.num_replicas}), got "
                f"({num_shards}). It is the number of TPU cores divided by num_cores_per_replica; "
                "leave it as `None` to take that."
            )
        if self.batch_size is None:
            raise wrong_argument(
                f"{_BATCH_SIZE_ARGUMENT[self.mode]} in TPUEstimator constructor cannot be `None` "
                f"if .{_METHOD[self.mode]} is running on TPU",
                None,
                "Pass the number of examples in a batch of all cores to TPUEstimator(...).",
            )
        if self.batch_size % self.num_replicas and not self.broadcasts:
            raise wrong_argument(
                f"{_VERB[self.mode]} batch size {self.batch_size} must be divisible by number of "
                f"replicas {self.num_replicas}: {_BATCH_SIZE_ARGUMENT[self.mode]} of TPUEstimator",
                self.batch_size,
                f"Pass a multiple of {self.num_replicas}.",
            )
        self._check_hosts()

    def _check_replicas_fit_hosts(self) -> None:
        """Refuses replicas that lie on several hosts, if a host's batch has to be cut for them."""
        assignment = self.device_assignment
        if assignment is None or self.pipeline is InputPipelineConfig.PER_HOST_V2:
            return
        per_replica = assignment.num_cores_per_replica
        per_host = assignment.topology.num_tpus_per_task
        if per_replica > per_host:
            raise ValueError(
                "Except the PER_HOST_V2 mode, the num of cores required by model parallelism "
                "specified by TPUConfig.num_cores_per_replica should be less than or equal to the "
                f"num_cores_per_host. num_cores_per_replica: {per_replica}, num_cores_per_host: "
                f"{per_host}"
            )

    def _check_hosts(self) -> None:
        """Refuses evaluation and prediction in which each host would see all data of input_fn.

        Source: `_InternalTPUContext._validate_tpu_configuration`.
        """
        if self.here is not None and self.broadcasts:
            raise UnsupportedError(
                f"TPUEstimator.{_METHOD[self.mode]}: with BROADCAST and SLICED one call of "
                f"input_fn serves all hosts, and here are {self.num_hosts} processes, each of "
                "which makes its own batches.\n  Pass TPUConfig(per_host_input_for_training="
                "InputPipelineConfig.PER_HOST_V2), and leave eval_training_input_configuration "
                "out. See migration_guide/devices.md."
            )
        if self.num_hosts == 1 or self.broadcasts or self.mode == ModeKeys.TRAIN:
            return
        evaluates = self.mode == ModeKeys.EVAL
        if self.pipeline is InputPipelineConfig.PER_HOST_V2 and evaluates:
            tf.compat.v1.logging.warn(
                "Running TPUEstimator.evaluate for input mode PER_HOST_V2 and num_hosts %d: each "
                "host evaluates the input that it is given.",
                self.num_hosts,
            )
            return
        if self.pipeline is InputPipelineConfig.PER_HOST_V2 and self.num_replicas == 1:
            return
        third = "PER_HOST_V2 mode" + ("" if evaluates else " with num_replicas=1")
        instead = "PER_HOST_V2" if evaluates else "BROADCAST"
        raise wrong_argument(
            f"TPUEstimator.{_METHOD[self.mode]} is only supported under three conditions: "
            f"1. num_hosts=1; 2. BROADCAST mode; 3. {third}. Here are {self.num_hosts} hosts and "
            f"{self.num_replicas} replicas. TPUConfig.per_host_input_for_training",
            self.pipeline,
            f"Pass TPUConfig(per_host_input_for_training=InputPipelineConfig.{instead}), or use "
            "one host for this call.",
        )


class TPUContext:
    """`params['context']` of a TPUEstimator's input_fn and model_fn.

    Source: `tf.compat.v1.estimator.tpu.TPUContext`.
    """

    def __init__(self, deployment: Deployment, invocation: int | None = None, host: int = 0):
        self._deployment = deployment
        self._invocation = invocation
        self._host = host

    def current_input_fn_deployment(self) -> tuple[str, int, int, int]:
        """(device of the host, index of this call, number of calls, replicas fed by it).

        Raises:
            RuntimeError: Called from model_fn.
        """
        self._only_from("input_fn")
        assert self._invocation is not None
        deployment = self._deployment
        replicas = deployment.num_replicas // deployment.invocations
        return self._host_device(self._host), self._invocation, deployment.invocations, replicas

    @property
    def num_replicas(self) -> int:
        return self._deployment.num_replicas

    @property
    def num_hosts(self) -> int:
        return self._deployment.num_hosts

    @property
    def current_host(self) -> int:
        """Index of the host for which input_fn is called.

        Raises:
            RuntimeError: Called from model_fn.
        """
        self._only_from("input_fn")
        return self._host

    @property
    def num_of_replicas_per_host(self) -> int:
        """Replicas on each host.

        Raises:
            ValueError: A replica has several cores, perhaps of several hosts.
        """
        if self._deployment.device_assignment is not None:
            raise ValueError("num_of_replicas_per_host is not supported for model_parallelism")
        return self._deployment.replicas_per_host

    @property
    def device_assignment(self) -> tf.tpu.experimental.DeviceAssignment | None:
        """The cores of each replica; None if each replica has one.

        Raises:
            RuntimeError: Called from input_fn.
        """
        self._only_from("model_fn")
        return self._deployment.device_assignment

    def device_for_replica(self, replica_id: int) -> tuple[str, int]:
        """(device of the replica's host, index of its core there)."""
        assignment = self._deployment.device_assignment
        for number, host in enumerate(self._deployment.hosts):
            if replica_id in host.replicas:
                core = host.replicas.index(replica_id)
                if assignment is not None:
                    core = int(assignment.tpu_ordinal(replica=replica_id))
                return self._host_device(number).replace("/replica:0", ""), core
        raise ValueError(f"There are {self.num_replicas} replicas, and no replica {replica_id}.")

    @property
    def tpu_host_placement_function(self) -> Any:
        """`function(host_id) -> device string`."""
        return lambda host_id: self._host_device(host_id)

    def _host_device(self, host: int) -> str:
        job = f"/job:{self._deployment.job}" if self._deployment.job else "/replica:0"
        return self._deployment.hosts[host].device or f"{job}/task:{host}/device:CPU:0"

    def _only_from(self, caller: str) -> None:
        actual = "model_fn" if self._invocation is None else "input_fn"
        if actual != caller:
            raise RuntimeError(f"This TPUContext instance must not be called from {actual}.")
