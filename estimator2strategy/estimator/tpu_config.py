"""`RunConfig` of a TPUEstimator: it adds the settings of the TPU system.

    config = RunConfig(
        cluster=tf.distribute.cluster_resolver.TPUClusterResolver("my-tpu"),
        tpu_config=TPUConfig(iterations_per_loop=100, num_shards=8),
    )

Nothing here starts a TPU system or waits for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.runtime.lookahead import IterationsPerLoop, LoopUnit
from estimator2strategy.engine.wrong_argument import ArgumentRule, checked
from estimator2strategy.estimator import run_config, tf_config
from estimator2strategy.estimator.contract_rules import is_number

_Config = TypeVar("_Config", bound="RunConfig")

_CORES_PER_REPLICA = (1, 2, 4, 8, 16, 32, 64, 128)
_ITERATIONS_PER_LOOP = re.compile(r"(?P<value>[1-9][0-9]*)(?P<suffix>[smh]?)")
_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600}


class InputPipelineConfig:
    """The number of calls of `input_fn`, and the share of the global batch that each one returns.

    PER_SHARD_V1: once per core, a core's share. PER_HOST_V1: once per host, the host's share.
    PER_HOST_V2: once per host, a core's share at a time. BROADCAST: once; every core gets the
    whole batch. SLICED: once; the batch is cut for the cores (evaluation only).

    Source: `tf.compat.v1.estimator.tpu.InputPipelineConfig`.
    """

    PER_SHARD_V1: Final = 1
    PER_HOST_V1: Final = 2
    PER_HOST_V2: Final = 3
    BROADCAST: Final = 4
    SLICED: Final = 5


_PIPELINE_NUMBERS = (1, 2, 3, 4, 5)  # of InputPipelineConfig; True and False are two of TF 1.4's


def parse_iterations_per_loop(value: int | str) -> IterationsPerLoop:
    """Reads 100 or '100' as steps, '30s', '5m' and '1h' as time.

    Raises:
        ValueError: `value` is not positive, or not of this form.

    Source: function of this name, tensorflow_estimator 2.15 tpu/util.py.
    """
    match = _ITERATIONS_PER_LOOP.fullmatch(str(value))
    if match is None:
        raise ValueError(
            "Invalid TPUConfig `iterations_per_loop` value. Value must be positive integer (steps) "
            f"or a time such as `3600s`, `60m` or `1h`. Given: {value!r}"
        )
    count, suffix = int(match["value"]), match["suffix"]
    if not suffix:
        return IterationsPerLoop(count, LoopUnit.STEPS)
    return IterationsPerLoop(count * _SECONDS_PER_UNIT[suffix], LoopUnit.SECONDS)


def _anything(instead: str) -> ArgumentRule:
    """An argument that is checked where the original checked it."""
    return ArgumentRule(lambda value: True, "", instead)


_PIPELINES = (
    "Pass InputPipelineConfig.PER_HOST_V1, PER_HOST_V2, PER_SHARD_V1 or BROADCAST, or a bool."
)
_ADDRESS = ArgumentRule(
    lambda value: value is None or isinstance(value, str), "must be a string", "Pass an address."
)
_RULES = {
    "iterations_per_loop": _anything("Pass a number of steps, or a time such as '30s'."),
    "num_shards": _anything("Leave it out, or pass the number of cores / num_cores_per_replica."),
    "num_cores_per_replica": _anything("Pass a power of 2 up to 128, or None."),
    "per_host_input_for_training": ArgumentRule(
        lambda value: value in (None, False, *_PIPELINE_NUMBERS),
        "must be an InputPipelineConfig",
        _PIPELINES,
        ValueError,
    ),
    "tpu_job_name": ArgumentRule(
        lambda value: not value or isinstance(value, str), "must be a string", "Pass a job's name."
    ),
    "initial_infeed_sleep_secs": _anything("Pass a number of seconds, an int, or None."),
    "input_partition_dims": ArgumentRule(
        lambda value: value is None or hasattr(value, "__len__"),
        "must be a list/tuple with one or two elements",
        "Pass [dims of features] or [dims of features, dims of labels]; with PER_HOST_V2 and "
        "num_cores_per_replica.",
    ),
    "eval_training_input_configuration": _anything(
        "Pass InputPipelineConfig.PER_HOST_V1 or InputPipelineConfig.SLICED."
    ),
    "experimental_host_call_every_n_steps": ArgumentRule(
        lambda value: is_number(value) and value >= 1,
        "must be a number above 0",
        "Pass a number of steps.",
        ValueError,
    ),
    "tpu_config": ArgumentRule(
        lambda value: not value or isinstance(value, TPUConfig),
        "must be a TPUConfig",
        "Pass estimator.tpu.TPUConfig(iterations_per_loop=..., ...).",
    ),
    "cluster": ArgumentRule(
        lambda value: not value or hasattr(value, "master"),
        "must be a ClusterResolver",
        "Pass tf.distribute.cluster_resolver.TPUClusterResolver(tpu=...), or None.",
    ),
    "master": _ADDRESS,
    "evaluation_master": _ADDRESS,
}


class _TPUConfigFields(NamedTuple):
    iterations_per_loop: int | str
    num_shards: int | None
    num_cores_per_replica: int | None
    per_host_input_for_training: int
    tpu_job_name: str | None
    initial_infeed_sleep_secs: int | None
    input_partition_dims: Sequence[Any] | None
    eval_training_input_configuration: int
    experimental_host_call_every_n_steps: int
    experimental_allow_per_host_v2_parallel_get_next: bool
    experimental_feed_hook: Callable[..., Any] | None


class TPUConfig(_TPUConfigFields):
    """Settings of the TPU system of a TPUEstimator; an immutable named tuple.

    Args:
        iterations_per_loop: Training steps per execution on the device, or its time: '30s',
            '5m', '1h'. Hooks and checkpoints see the program only between executions.
        num_shards: Number of replicas: cores / `num_cores_per_replica`.
        num_cores_per_replica: Cores over which one model is spread; None: 1.
        per_host_input_for_training: A value of `InputPipelineConfig`. True is PER_HOST_V1,
            False is PER_SHARD_V1; the field holds the value.
        tpu_job_name: Job of the TPU workers; None: that of `TF_CONFIG`, if any.
        initial_infeed_sleep_secs: Seconds to wait before the first batch is sent.
        input_partition_dims: For each of features and labels, nested as these are: into how
            many parts each axis is cut, or None. Needs PER_HOST_V2 and
            `num_cores_per_replica`.
        eval_training_input_configuration: PER_HOST_V1 (evaluation does as training does) or
            SLICED.
        experimental_host_call_every_n_steps: Training steps per host call.
        experimental_allow_per_host_v2_parallel_get_next: True if the order of batches over
            cores may vary.
        experimental_feed_hook: Class to use instead of TPUEstimator's infeed hook.

    Raises:
        ValueError: A value is out of its range, or two settings contradict each other.
        TypeError: `num_shards` or `initial_infeed_sleep_secs` is no int.

    Source: `tf.compat.v1.estimator.tpu.TPUConfig`, tensorflow_estimator 1.15 to 2.15
    tpu_config.py (1.15 lacks the last two fields).
    """

    @checked(_RULES)
    def __new__(
        cls,
        iterations_per_loop: int | str = 2,
        num_shards: int | None = None,
        num_cores_per_replica: int | None = None,
        per_host_input_for_training: bool | int = True,
        tpu_job_name: str | None = None,
        initial_infeed_sleep_secs: int | None = None,
        input_partition_dims: Sequence[Any] | None = None,
        eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: int = 1,
        experimental_allow_per_host_v2_parallel_get_next: bool = False,
        experimental_feed_hook: Callable[..., Any] | None = None,
    ) -> TPUConfig:
        parse_iterations_per_loop(iterations_per_loop)
        if num_shards is not None:
            check_positive_integer(num_shards, "TPUConfig num_shards")
        if initial_infeed_sleep_secs:
            check_positive_integer(initial_infeed_sleep_secs, "TPUConfig initial_infeed_sleep_secs")
        if num_cores_per_replica is not None and num_cores_per_replica not in _CORES_PER_REPLICA:
            raise ValueError(
                f"num_cores_per_replica must be {', '.join(map(str, _CORES_PER_REPLICA))}; "
                f"got {num_cores_per_replica}"
            )
        _check_evaluation_input(eval_training_input_configuration)
        pipeline = _input_pipeline(per_host_input_for_training)
        if input_partition_dims is not None:
            _check_partition_dims(input_partition_dims, pipeline, num_cores_per_replica)
        return super().__new__(
            cls,
            iterations_per_loop=iterations_per_loop,
            num_shards=num_shards,
            num_cores_per_replica=num_cores_per_replica,
            per_host_input_for_training=pipeline,
            tpu_job_name=tpu_job_name or _tpu_job_name_of_environment(),
            initial_infeed_sleep_secs=initial_infeed_sleep_secs,
            input_partition_dims=input_partition_dims,
            eval_training_input_configuration=eval_training_input_configuration,
            experimental_host_call_every_n_steps=experimental_host_call_every_n_steps,
            experimental_allow_per_host_v2_parallel_get_next=(
                experimental_allow_per_host_v2_parallel_get_next
            ),
            experimental_feed_hook=experimental_feed_hook,
        )


class RunConfig(run_config.RunConfig):
    """`RunConfig` of an Estimator, and the TPU system to run on.

    Source: `tf.compat.v1.estimator.tpu.RunConfig`, tensorflow_estimator 1.15 to 2.15
    tpu_config.py.
    """

    @checked(_RULES)
    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        """Takes the addresses of the TPU system; nothing is connected to it yet.

        Args:
            tpu_config: Settings of the TPU system; None: `TPUConfig()`.
            evaluation_master: Address for evaluation; None: `TF_CONFIG`'s, else `master`.
            master: Address for training; None: that of `cluster`, else `TF_CONFIG`'s.
            cluster: A `tf.distribute.cluster_resolver.ClusterResolver`. Its cluster goes into
                `session_config`.
            **kwargs: Arguments of the `RunConfig` of an Estimator.

        Raises:
            ValueError: Both `master` and `cluster` are given, or both `cluster` and a
                `session_config` that already has a cluster.
        """
        super().__init__(**kwargs)
        if master is not None and cluster is not None:
            raise ValueError("Both master and cluster are set. Keep one of them.")
        self._tpu_config = tpu_config or TPUConfig()
        self._cluster = cluster
        if cluster:
            self._join(cluster)
        if master is not None:
            self._master = master
        if evaluation_master is not None:
            self._evaluation_master = evaluation_master
        # An evaluator was put where it is by whoever wrote TF_CONFIG, so that is left alone.
        elif not self._evaluation_master and self.task_type != tf_config.TaskType.EVALUATOR:
            self._evaluation_master = self._master

    @property
    def tpu_config(self) -> TPUConfig:
        """Settings of the TPU system."""
        return self._tpu_config

    @property
    def cluster(self) -> Any:
        """The cluster resolver, or None."""
        return self._cluster

    @checked({"tpu_config": _RULES["tpu_config"]})
    def replace(self: _Config, **kwargs: Any) -> _Config:
        """A copy with some settings changed; unlike the addresses, `tpu_config` is one of them.

        Raises:
            ValueError: As `replace` of an Estimator's `RunConfig`.
        """
        tpu_config = kwargs.pop("tpu_config", self._tpu_config)
        config = super().replace(**kwargs)
        config._tpu_config = tpu_config
        return config

    def _join(self, cluster: Any) -> None:
        """Takes master, cluster and session settings from a resolver."""
        self._master, self._cluster_spec = _resolve(cluster)
        session_config = run_config.ConfigProto(
            allow_soft_placement=True, isolate_session_state=True
        )
        if self._session_config is not None:
            # A copy: programs give the same proto to several configs.
            session_config.Clear()
            session_config.CopyFrom(self._session_config)
        if session_config.HasField("cluster_def"):
            raise ValueError(
                "You cannot provide a ClusterResolver and session_config.cluster_def. "
                "Keep one of them."
            )
        if self._cluster_spec:
            session_config.cluster_def.CopyFrom(self._cluster_spec.as_cluster_def())
        self._session_config = session_config

    def _maybe_overwrite_session_config_for_distributed_training(self) -> None:
        """A TPU program is one graph over all its hosts: device filters would hide them."""


def check_positive_integer(value: Any, name: str) -> None:
    """Raises TypeError if `value` is no int (NumPy's count), ValueError if it is not positive."""
    if not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be int, got {type(value)}")
    if value <= 0:
        raise ValueError(f"{name} must be positive, got {value}")


def _resolve(cluster: Any) -> tuple[str, Any]:
    """Master and cluster of a resolver; that of a nameless TPU is this very machine.

    Asking TensorFlow's resolver about a nameless TPU would search the network for one.
    """
    is_tpus = isinstance(cluster, tf.distribute.cluster_resolver.TPUClusterResolver)
    if is_tpus and not _tf_private.tpu_name(cluster):
        return "", tf.train.ClusterSpec({})
    return cluster.master(), cluster.cluster_spec()


def _input_pipeline(per_host_input_for_training: bool | int) -> int:
    """The booleans of TF 1.4 as numbers. By identity: True equals PER_SHARD_V1."""
    if per_host_input_for_training is True:
        return InputPipelineConfig.PER_HOST_V1
    if per_host_input_for_training is False:
        return InputPipelineConfig.PER_SHARD_V1
    return per_host_input_for_training


def _check_evaluation_input(configuration: int) -> None:
    if configuration not in (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.SLICED):
        raise ValueError(
            f"eval_training_input_configuration must be PER_HOST_V1 or SLICED; got {configuration}"
        )


def _check_partition_dims(dims: Sequence[Any], pipeline: int, cores: int | None) -> None:
    if len(dims) not in (1, 2):
        raise ValueError(
            "input_partition_dims must be a list/tuple with one or two elements. "
            f"Given {len(dims)}: one for features, one for labels."
        )
    if pipeline != InputPipelineConfig.PER_HOST_V2:
        raise ValueError("input_partition_dims is only supported in PER_HOST_V2 mode.")
    if cores is None:
        raise ValueError("input_partition_dims requires setting num_cores_per_replica.")


def _tpu_job_name_of_environment() -> str | None:
    service = tf_config.read_tf_config().get("service") or {}
    name = service.get("tpu_worker_job_name")
    if name:
        tf.compat.v1.logging.info("Load TPU job name from TF_CONFIG: %s", name)
    return name
