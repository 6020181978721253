"""TPUs of a program of TF 1.15: `TPUClusterResolver`, and `tf.tpu.rewrite` in a plain Session.

TensorFlow makes a TPU's graph of a computation, and a CPU has no kernels for that. On an emulated
core the computation is part of the graph around it. Without emulation TensorFlow's own functions
run, for programs that build graphs for a TPU without running them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private, _tf_switches
from estimator2strategy.engine.runtime import devices, tpu_system
from estimator2strategy.engine.runtime.tpu_system import EMULATE_VARIABLE
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.errors import DeviceError, UnsupportedError


class TPUClusterResolver(tf.distribute.cluster_resolver.TPUClusterResolver):
    """Like TF 1.15's; the network is asked only for a TPU that has a name, and is not emulated.

    It is TensorFlow's own class, so today's `TPUStrategy` takes it.

    Args:
        tpu: Name or address, alone or in a list; empty: the TPU of this machine. None: the one that
            KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS or TPU_NAME names in the environment; that of this
            machine if it has one, or if neither is set.
        zone, project: Where a TPU with a name is.
        job_name: The job of its tasks.
        coordinator_name, coordinator_address: The job and the address of this process, where a TPU
            with a name is to know them.
        **kwargs: As for `tf.distribute.cluster_resolver.TPUClusterResolver`.

    Raises:
        DeviceError: A TPU of that name was not found.
        NotImplementedError: There are several in the list.
    """

    rpc_layer = None

    def __init__(
        self,
        tpu: Any = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        *args: Any,
        **kwargs: Any,
    ):
        devices.emulate_tpu_if_asked()
        name, variable = (None, None) if devices.emulated_cores() else _asked_for(tpu)
        self._of_this_machine = not name
        if name:
            coordinator = (coordinator_name, coordinator_address)
            self._asked = (name, zone, project, variable)
            with tpu_system.looking_up(*self._asked):
                super().__init__(name, zone, project, job_name, *coordinator, *args, **kwargs)
        else:
            super().__init__("local", job_name=job_name)

    @staticmethod
    def connect(
        tpu: Any = None, zone: str | None = None, project: str | None = None
    ) -> TPUClusterResolver:
        """A resolver whose TPU is connected to and started, in graph mode too."""
        resolver = TPUClusterResolver(tpu, zone, project)
        connect_to_cluster(resolver)
        initialize_tpu_system(resolver)
        return resolver

    def cluster_spec(self) -> tf.train.ClusterSpec | None:
        """The addresses of the TPU's hosts; None for this machine."""
        if self._of_this_machine:
            return None
        with tpu_system.looking_up(*self._asked):
            return super().cluster_spec()

    def num_accelerators(self, *args: Any, **kwargs: Any) -> dict[str, int]:
        """The cores of each host."""
        if devices.emulated_cores():
            return {"TPU": devices.emulated_cores()}
        return cast(dict[str, int], super().num_accelerators(*args, **kwargs))

    def get_tpu_system_metadata(self) -> tf.tpu.experimental.TPUSystemMetadata:
        """The cores of a TPU system, in graph mode too."""
        if devices.emulated_cores():
            return devices.emulated_metadata()
        with modern_world():
            return super().get_tpu_system_metadata()

    def has_nothing_to_start(self) -> bool:
        """True for emulated cores, and for this machine if it has no TPU."""
        if devices.emulated_cores():
            return True
        return self._of_this_machine and not tf.config.list_physical_devices("TPU")


# In the order in which TF 1.15 asked them.
_VARIABLES = ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_NAME")


def _asked_for(tpu: Any) -> tuple[str | None, str | None]:
    """(name or address of a TPU, None for this machine's; the variable that it comes from).

    Source: `TPUClusterResolver.__init__`, TF 1.15. There a machine had no TPU of its own.
    """
    names = tpu if isinstance(tpu, (list, tuple)) else [tpu]
    if len(names) > 1:
        raise NotImplementedError(
            "Using multiple TPUs in a single session is not yet implemented: TPUClusterResolver "
            f"was given {list(names)}. Name one."
        )
    name = names[0] if names else ""
    if name is not None:
        return tf.compat.as_text(name) or None, None
    variable = next(filter(os.environ.get, _VARIABLES), None)
    if variable is None or tf.config.list_physical_devices("TPU"):
        return None, None
    return os.environ[variable], variable


def _has_nothing_to_start(resolver: Any) -> bool:
    return isinstance(resolver, TPUClusterResolver) and resolver.has_nothing_to_start()


def connect_to_cluster(cluster_spec_or_resolver: Any, *args: Any, **kwargs: Any) -> None:
    """`tf.config.experimental_connect_to_cluster`, in graph mode too, as in TF 1.15.

    To this machine, emulated cores included, there is nothing to connect.
    """
    if not _has_nothing_to_start(cluster_spec_or_resolver):
        with _tf_switches.eager_mode():
            tf.config.experimental_connect_to_cluster(cluster_spec_or_resolver, *args, **kwargs)


def initialize_tpu_system(cluster_resolver: Any = None) -> Any:
    """`tf.tpu.experimental.initialize_tpu_system`, in graph mode too, as in TF 1.15.

    Args:
        cluster_resolver: A TPUClusterResolver; None: that of this machine's TPU.

    Returns:
        The topology of the TPU. None for this machine if it has none, and for emulated cores, which
        need no start.
    """
    resolver = TPUClusterResolver("") if cluster_resolver is None else cluster_resolver
    if _has_nothing_to_start(resolver):
        return None
    with _tf_switches.eager_mode():
        return tf.tpu.experimental.initialize_tpu_system(resolver)


def shutdown_tpu_system(cluster_resolver: Any = None) -> None:
    """`tf.tpu.experimental.shutdown_tpu_system`, in graph mode too; see `initialize_tpu_system`."""
    resolver = TPUClusterResolver("") if cluster_resolver is None else cluster_resolver
    if not _has_nothing_to_start(resolver):
        with _tf_switches.eager_mode():
            tf.tpu.experimental.shutdown_tpu_system(resolver)


_tpu = tf.compat.v1.tpu

# One of these is set where a program can reach a TPU over the network.
_TPU_VARIABLES = ("TPU_NAME", "TPU_WORKER_HOSTNAMES", "COLAB_TPU_ADDR", "XRT_TPU_CONFIG")


def initialize_system(embedding_config: Any = None, job: str | None = None) -> Any:
    """The op that starts the TPU and gives its topology; an empty string on emulated cores.

    Raises:
        DeviceError: There is no TPU, and none is emulated.
    """
    if devices.emulated_cores():
        return tf.constant("")
    if not any(map(os.environ.get, _TPU_VARIABLES)) and not tf.config.list_physical_devices("TPU"):
        raise DeviceError(
            "tpu.initialize_system: no TPU is attached. To run the computation on emulated cores: "
            "e2s run --emulate-tpu-cores=1 ..., or "
            f"{EMULATE_VARIABLE}=1 in the environment."
        )
    return _tpu.initialize_system(embedding_config, job)


def shutdown_system(job: str | None = None) -> Any:
    """The op that stops the TPU; nothing on emulated cores."""
    return tf.no_op() if devices.emulated_cores() else _tpu.shutdown_system(job)


def rewrite(computation: Callable[..., Any], inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """See `tf.compat.v1.tpu.rewrite`; on an emulated core `computation` joins the graph."""
    if not devices.emulated_cores():
        return _tpu.rewrite(computation, inputs, *args, **kwargs)
    return _on_host(computation, inputs or ())


def replicate(
    computation: Callable[..., Any], inputs: Any = None, *args: Any, **kwargs: Any
) -> list[Any]:
    """See `tf.compat.v1.tpu.replicate`.

    Raises:
        UnsupportedError: Cores are emulated, and it is for several.
    """
    if not devices.emulated_cores():
        return cast(list[Any], _tpu.replicate(computation, inputs, *args, **kwargs))
    of_cores = inputs or [[]]
    _one_core("replicate", len(of_cores))
    return [_on_host(computation, of_cores[0])]


def shard(
    computation: Callable[..., Any],
    inputs: Any = None,
    num_shards: int = 1,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """See `tf.compat.v1.tpu.shard`; outputs that are no vectors get a dimension for the shards.

    Raises:
        UnsupportedError: Cores are emulated, and `num_shards` is not 1.
    """
    if not devices.emulated_cores():
        return _tpu.shard(computation, inputs, num_shards, *args, **kwargs)
    _one_core("shard", num_shards)
    outputs = _on_host(computation, inputs or ())
    if isinstance(outputs, tf.Operation):
        return [outputs]
    everywhere = kwargs.get("outputs_from_all_shards", True)
    kept = everywhere if isinstance(everywhere, Sequence) else [everywhere] * len(outputs)
    return [
        tf.expand_dims(output, 0) if all_shards and output.shape.rank == 0 else output
        for output, all_shards in zip(outputs, kept, strict=True)
    ]


def batch_parallel(
    computation: Callable[..., Any], inputs: Any = None, num_shards: int = 1, **kwargs: Any
) -> Any:
    """See `tf.compat.v1.tpu.batch_parallel`.

    Raises:
        UnsupportedError: Cores are emulated, and `num_shards` is not 1.
    """
    if not devices.emulated_cores():
        return _tpu.batch_parallel(computation, inputs, num_shards, **kwargs)
    return shard(computation, inputs, num_shards)


def _one_core(function: str, cores: int) -> None:
    if cores != 1:
        raise UnsupportedError(
            f"tpu.{function} for {cores} cores in a Session: only one core is emulated outside of "
            "a TPUEstimator, for each core had a copy of the variables. Ask for one, or give the "
            "computation to a TPUEstimator as its model_fn."
        )


def _on_host(computation: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """The results of `computation` as in `tpu.rewrite`: tensors that wait for all returned ops.

    Returns:
        A list of tensors; a structure of them where `computation` returned a nested one; an
        operation where it returned no tensors.
    """
    scope = tf.compat.v1.get_variable_scope()
    use_resource = scope.use_resource
    scope.set_use_resource(True)
    try:
        with _tf_private.tpu_shard_context(1), _tf_private.sums_over_one_core():
            outputs = computation(*(tf.identity(value) for value in inputs))
    finally:
        scope.set_use_resource(use_resource)
    if outputs is None:
        outputs = []
    elif not isinstance(outputs, (dict, list, tuple)):
        outputs = [outputs]
    ops = [part for part in tf.nest.flatten(outputs) if isinstance(part, tf.Operation)]
    with tf.control_dependencies(ops):
        if not isinstance(outputs, dict) and len(ops) == len(outputs):
            return tf.no_op()
        if isinstance(outputs, (list, tuple)) and not any(map(tf.nest.is_nested, outputs)):
            return [tf.identity(o) for o in outputs if not isinstance(o, tf.Operation)]
        return tf.nest.map_structure(
            lambda part: part if isinstance(part, tf.Operation) else tf.identity(part), outputs
        )
