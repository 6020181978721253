"""`TPUEstimator`: an Estimator that deals each batch out to the cores of a strategy."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.recording import Placement
from estimator2strategy.engine.record.under_jax import UnderJax
from estimator2strategy.engine.replay.xla.target import JaxTarget
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.runtime.jax_devices import replicas_on
from estimator2strategy.engine.runtime.lookahead import IterationsPerLoop
from estimator2strategy.engine.runtime.training_options import (
    TrainingOptions,
    jax_target_of,
    uses_jax,
)
from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator import tpu_export
from estimator2strategy.estimator.calling import call_tpu_model_fn, checked_spec
from estimator2strategy.estimator.checks import (
    check_blocks_of_several_hosts,
    check_cores_of_several_hosts,
    check_no_strategy_under_jax,
)
from estimator2strategy.estimator.contract_rules import TPU_RULES
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.estimator_parts import EstimatorParts, OfTpu
from estimator2strategy.estimator.moved_arguments import refuses_moved
from estimator2strategy.estimator.saved_model import ServedGraph
from estimator2strategy.estimator.specs import EstimatorSpec, TPUEstimatorSpec
from estimator2strategy.estimator.tpu_checks import (
    check_evaluation_steps,
    check_given_strategy,
    check_one_core_each,
    check_training_steps,
    check_use_of_cores,
    strategy_of_cores,
)
from estimator2strategy.estimator.tpu_config import (
    InputPipelineConfig,
    RunConfig,
    parse_iterations_per_loop,
)
from estimator2strategy.estimator.tpu_context import Deployment
from estimator2strategy.estimator.tpu_embedding import check_embedding_spec
from estimator2strategy.estimator.tpu_export import ExportSavedModelApiVersion
from estimator2strategy.estimator.tpu_input import call_tpu_input_fn
from estimator2strategy.estimator.tpu_outfeed import TrainingLog
from estimator2strategy.estimator.tpu_placement import OnTpuCores

tf1 = tf.compat.v1

# Not "use_tpu", which TPUEstimator sets as well: programs have always passed a value of their own.
_RESERVED_PARAMS = ("batch_size", "context")
_MODES = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)


class TPUEstimator(Estimator):
    """Trains, evaluates and serves a model_fn that was written for one core of a TPU.

    With `use_tpu=True` the program runs on the cores of a strategy: TPUStrategy where there is a
    TPU, emulated cores after `emulate_tpu`, or `strategy`. With `use_tpu=False` it runs on one
    device, with the global batch.

    Args:
        model_fn: `model_fn(features, labels, mode, params, config)` returning a TPUEstimatorSpec
            or an EstimatorSpec. `params['batch_size']` is the per-core batch size there.
        model_dir: As for Estimator.
        config: A TPU RunConfig.
        params: Hyperparameters; `batch_size`, `context` and `use_tpu` are reserved.
        use_tpu: True: run on TPU cores.
        train_batch_size: Global batch size, in examples.
        eval_batch_size: Likewise, for `evaluate`.
        predict_batch_size: Likewise, for `predict`.
        batch_axis: For each tensor of (features, labels), the axis along which a PER_HOST_V1 batch
            is split over the cores of its host. Default: the first.
        eval_on_tpu: False: `evaluate` runs on the host, also with `use_tpu=True`.
        export_to_tpu: True: an exported SavedModel has a graph for prediction on TPUs, with the
            tags `serve` and `tpu`.
        export_to_cpu: True: it has graphs for the host, with the tag of their mode.
        warm_start_from: As for Estimator.
        export_saved_model_api_version: 1 (or V1): the graph for TPUs has all of model_fn on the
            TPU. 2: model_fn is called with `params['use_tpu']` true, and calls `inference_on_tpu`
            or the like itself.
        strategy: Any `tf.distribute.Strategy` to run on instead of a TPU's.
        options: As for Estimator; `jit_compile` is for `use_tpu=False`.

    Raises:
        ValueError: `params` has a reserved key, a batch size is missing or not positive, or
            there is no such version of the export.

    Source: `tf.compat.v1.estimator.tpu.TPUEstimator`, tensorflow_estimator 2.15.
    """

    _config: RunConfig

    @refuses_moved
    @checked(TPU_RULES)
    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: dict[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Sequence[int] | None = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: Any = None,
        export_saved_model_api_version: Any = ExportSavedModelApiVersion.V1,
        *,
        strategy: tf.distribute.Strategy | None = None,
        options: TrainingOptions | None = None,
    ):
        config = _checked_config(config)
        _check_params(params)
        sizes = (train_batch_size, eval_batch_size, predict_batch_size)
        self._batch_sizes = dict(zip(_MODES, sizes, strict=True))
        if use_tpu:
            check_use_of_cores(config.tpu_config, *sizes)
        elif eval_on_tpu:
            tf1.logging.warn("eval_on_tpu ignored because use_tpu is False.")
        check_embedding_spec(embedding_config_spec, config.tpu_config, use_tpu, eval_on_tpu)
        self._use_tpu = use_tpu
        self._embedding_spec = embedding_config_spec
        self._eval_on_tpu = eval_on_tpu
        self._batch_axis = batch_axis
        self._export_to_tpu, self._export_to_cpu = export_to_tpu, export_to_cpu
        self._export_api_version = _export_version(export_saved_model_api_version)
        self._log_every = config.log_step_count_steps
        super().__init__(
            model_fn,
            model_dir=model_dir,
            config=config.replace(log_step_count_steps=None),
            params=params,
            warm_start_from=warm_start_from,
            strategy=strategy,
            options=options,
        )
        self._given_strategy = strategy or strategy_of_cores(config, use_tpu)
        self._tpu_cores: devices.TpuCores | None = None
        parse_iterations_per_loop(config.tpu_config.iterations_per_loop)  # refuses others

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_tpu_cores": None}

    @property
    def e2s_parts(self) -> EstimatorParts:
        of_tpu = OfTpu(self._batch_sizes, self._batch_axis, self._embedding_spec)
        return dataclasses.replace(super().e2s_parts, tpu=of_tpu)

    @property
    def _iterations(self) -> IterationsPerLoop:
        return parse_iterations_per_loop(self._config.tpu_config.iterations_per_loop)

    # Where each mode runs.

    def _deployment(self, mode: str) -> Deployment:
        tpu_config = self._config.tpu_config
        pipeline = tpu_config.per_host_input_for_training
        if mode != ModeKeys.TRAIN:
            if tpu_config.eval_training_input_configuration is InputPipelineConfig.SLICED:
                pipeline = InputPipelineConfig.SLICED
            elif pipeline is InputPipelineConfig.PER_SHARD_V1:
                pipeline = InputPipelineConfig.PER_HOST_V1
        cores = self._cores(mode)
        deployment = Deployment(
            mode,
            self._batch_sizes[mode],
            cores and cores.strategy,
            pipeline,
            cores and cores.device_assignment,
            tpu_config.tpu_job_name,
        )
        if deployment.on_host and pipeline is InputPipelineConfig.SLICED:
            raise ValueError(
                "Invalid TPUConfig `eval_training_input_configuration` value. SLICED mode only "
                "works on use_tpu = True."
            )
        deployment.validate(tpu_config.num_shards, self._config.master)
        return deployment

    def _cores(self, mode: str) -> devices.TpuCores | None:
        """The cores that `mode` runs on; None: the host."""
        if mode == ModeKeys.EVAL and not self._eval_on_tpu:
            return None
        if uses_jax(self._training_options) and self._use_tpu:
            check_no_strategy_under_jax(self._given_strategy)
            check_blocks_of_several_hosts(self._iterations)
            if devices.asks_for_one_core(self._config.tpu_config):
                check_cores_of_several_hosts(mode)
        target = self._jax_target(mode)
        if target is not None and self._use_tpu:
            return devices.TpuCores(replicas_on(target.devices))
        if self._tpu_cores is None and self._given_strategy is not None:
            check_given_strategy(self._config.tpu_config)
            self._tpu_cores = devices.cores_of(self._given_strategy)
        if self._tpu_cores is None and self._use_tpu:
            config = self._config
            self._tpu_cores = devices.tpu_cores(config.cluster, config.master, config.tpu_config)
        return self._tpu_cores

    def _placement(self, mode: str) -> Placement:
        deployment = self._deployment(mode)
        if deployment.on_host:
            return super()._placement(mode)
        cores = OnTpuCores(
            deployment,
            self._config.tpu_config,
            self._iterations,
            self._training_log,
            self._batch_axis,
            self._embedding_spec,
            emulates=self._strategy is None and devices.emulated_cores() > 0,
        )
        target = self._jax_target(mode)
        return cores if target is None else UnderJax(cores, target)

    def _jax_target(self, mode: str) -> JaxTarget | None:
        """The devices of JAX that are the cores in `mode`; None: TensorFlow has them."""
        one_core = devices.asks_for_one_core(self._config.tpu_config)
        # Nobody knows how many predictions a program asks for: each host makes all of them.
        here = one_core or mode == ModeKeys.PREDICT
        target = jax_target_of(self._training_options, 1 if one_core else None, here)
        if target is not None:
            check_one_core_each(self._config.tpu_config)
        return target

    @property
    def _training_log(self) -> TrainingLog:
        # The hooks that log are made here, so that they count executions and not steps.
        return TrainingLog(
            self._log_every,
            self._iterations,
            self._batch_sizes[ModeKeys.TRAIN],
            self.model_dir if self._config.save_summary_steps and self._config.is_chief else None,
        )

    def _train_stops(self, steps: int | None, max_steps: int | None) -> list[Any]:
        if not self._deployment(ModeKeys.TRAIN).on_host:
            check_training_steps(steps, max_steps)
        return super()._train_stops(steps, max_steps)

    def _eval_stops(self, steps: int | None) -> list[Any]:
        if not self._deployment(ModeKeys.EVAL).on_host:
            check_evaluation_steps(steps)
        return super()._eval_stops(steps)

    # Calling the user's functions.

    def _create_and_assert_global_step(self, graph: tf.Graph) -> tf.Variable:
        """Makes the global step: a resource variable on the host too, because TPUs need one."""
        scope = tf1.get_variable_scope()
        with tf1.variable_scope(scope, use_resource=True, auxiliary_name_scope=False):
            return tf1.train.create_global_step(graph)

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        """Calls input_fn for the host (`use_tpu=False`)."""
        given = (self._params, self._config)
        return call_tpu_input_fn(input_fn, self._deployment(mode), *given)

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        """Calls model_fn for the host."""
        spec = self._call_on_host(features, labels, self._deployment(mode))
        if mode != ModeKeys.TRAIN:
            return spec
        hooks = (*spec.training_hooks, *self._training_log.hooks(spec.loss, on_host=True))
        return spec._replace(training_hooks=hooks)

    def _call_on_host(self, features: Any, labels: Any, deployment: Deployment) -> EstimatorSpec:
        tf1.logging.info("Running %s on CPU/GPU", deployment.mode)
        tf1.logging.info("Calling model_fn.")
        spec = self._spec_of(features, labels, deployment)
        tf1.logging.info("Done calling model_fn.")
        return self._of_host(spec)

    def _of_host(self, spec: Any) -> EstimatorSpec:
        return checked_spec(spec, self._model_fn)

    def _spec_of(
        self, features: Any, labels: Any, deployment: Deployment, use_tpu: bool = False
    ) -> Any:
        arguments = (self._params, self.config, use_tpu)
        return call_tpu_model_fn(self._model_fn, features, labels, deployment, *arguments)

    # Graphs to export.

    def _served_graphs(self, mode: str, receiver_fn: Callable[[], Any]) -> list[ServedGraph]:
        # A server sends batches of any size: there is no `params['batch_size']`.
        served = Deployment(mode, batch_size=None)
        on_host = functools.partial(self._call_on_host, deployment=served)
        on_tpu = functools.partial(self._call_for_tpu, deployment=served)
        return tpu_export.served_graphs(
            mode,
            receiver_fn,
            on_host=on_host if self._export_to_cpu else None,
            on_tpu=on_tpu if self._export_to_tpu else None,
        )

    def _call_for_tpu(self, features: Any, labels: Any, deployment: Deployment) -> EstimatorSpec:
        """Calls model_fn for a graph that a TPU serves.

        With version 1 the whole model is put on the TPU, and model_fn is not told so. With version
        2 it is told by `params['use_tpu']`, and puts there what it wants to.

        Source: `TPUEstimator._call_model_fn`, tensorflow_estimator 2.15.
        """
        with tpu_export.tpu_inference():
            if self._export_api_version is ExportSavedModelApiVersion.V2:
                spec = self._spec_of(features, labels, deployment, use_tpu=True)
            else:
                call = functools.partial(self._spec_of, deployment=deployment)
                spec = tpu_export.model_fn_inference_on_tpu(call, features, labels)
                if isinstance(spec, TPUEstimatorSpec):
                    # Nobody runs these, and their tensors are inside of the TPU's function.
                    spec = spec._replace(eval_metrics=None, host_call=None)
        return self._of_host(spec)


def _checked_config(config: Any) -> RunConfig:
    if not isinstance(config, RunConfig):
        raise ValueError("`config` must be provided with type `tpu_config.RunConfig`")
    return config


def _check_params(params: dict[str, Any] | None) -> None:
    reserved = [key for key in _RESERVED_PARAMS if key in (params or {})]
    if reserved:
        raise ValueError(
            f"{list(_RESERVED_PARAMS)} are reserved keys but existed in params {params}. "
            f"TPUEstimator sets {reserved} itself; rename yours."
        )


def _export_version(version: Any) -> ExportSavedModelApiVersion:
    if version not in (1, 2, *ExportSavedModelApiVersion):
        raise ValueError(f"export_saved_model_api_version should be 1 or 2; got {version}.")
    return ExportSavedModelApiVersion(version)
