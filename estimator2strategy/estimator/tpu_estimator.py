"""`TPUEstimator`: an Estimator that deals each batch out to the cores of a strategy."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.mode_keys import ModeKeys
from estimator2strategy.estimator.specs import (
    EstimatorSpec,
    HostCallHook,
    TPUEstimatorSpec,
    call_on_host,
    checked_eval_metric_ops,
)
from estimator2strategy.estimator.tpu_checks import (
    check_batch_sizes,
    check_given_steps,
    check_predictions,
    check_static,
    check_training_spec,
    checked_tpu_spec,
)
from estimator2strategy.estimator.tpu_config import (
    InputPipelineConfig,
    RunConfig,
    parse_iterations_per_loop,
)
from estimator2strategy.estimator.tpu_context import Deployment, TPUContext
from estimator2strategy.record import feeding
from estimator2strategy.record.functions import argument_names, location, user_line
from estimator2strategy.record.inputs import call_input_fn
from estimator2strategy.record.recording import Recording
from estimator2strategy.record.replicated import Cores, one_shard_of
from estimator2strategy.runtime import devices
from estimator2strategy.runtime.hooks import ExamplesPerSecondHook

tf1 = tf.compat.v1

_RESERVED_PARAMS = ("batch_size", "context", "use_tpu")


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
        use_tpu: Whether to run on TPU cores.
        train_batch_size: Global batch size, in examples.
        eval_batch_size: Likewise, for `evaluate`.
        predict_batch_size: Likewise, for `predict`.
        batch_axis: For each tensor of (features, labels), the axis along which a per-host batch is
            split over the cores. Default: the first.
        eval_on_tpu: False: `evaluate` runs on the host, also with `use_tpu=True`.
        warm_start_from: As for Estimator.
        strategy: Any `tf.distribute.Strategy` to run on instead of a TPU's.

    Raises:
        ValueError: `params` has a reserved key, a batch size is missing or not positive.

    Source: `tf.compat.v1.estimator.tpu.TPUEstimator`, tensorflow_estimator 2.15.
    """

    _config: RunConfig

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
        export_saved_model_api_version: Any = 1,
        *,
        strategy: tf.distribute.Strategy | None = None,
    ):
        if not isinstance(config, RunConfig):
            raise ValueError("`config` must be provided with type `tpu_config.RunConfig`")
        reserved = [key for key in _RESERVED_PARAMS if key in (params or {})]
        if reserved:
            raise ValueError(
                f"{list(_RESERVED_PARAMS)} are reserved keys but existed in params {params}. "
                f"TPUEstimator sets {reserved} itself; rename yours."
            )
        if embedding_config_spec is not None:
            raise NotImplementedError(
                "embedding_config_spec is not supported yet. Look the tables up in model_fn with "
                "tf.nn.embedding_lookup instead."
            )
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        if use_tpu:
            check_batch_sizes(train_batch_size, eval_batch_size, predict_batch_size)
        self._use_tpu = use_tpu
        self._eval_on_tpu = eval_on_tpu
        self._batch_axis = batch_axis
        self._export_to_tpu = export_to_tpu
        self._export_to_cpu = export_to_cpu
        self._export_api_version = export_saved_model_api_version
        # The hooks that log are made here, so that they count executions and not steps.
        self._log_every = config.log_step_count_steps
        super().__init__(
            model_fn,
            model_dir=model_dir,
            config=config.replace(log_step_count_steps=None),
            params=params,
            warm_start_from=warm_start_from,
            strategy=strategy,
        )
        self._iterations = parse_iterations_per_loop(self._config.tpu_config.iterations_per_loop)

    # Where each mode runs.

    def _deployment(self, mode: str) -> Deployment:
        tpu_config = self._config.tpu_config
        pipeline = tpu_config.per_host_input_for_training
        if mode != ModeKeys.TRAIN:
            if tpu_config.eval_training_input_configuration is InputPipelineConfig.SLICED:
                pipeline = InputPipelineConfig.SLICED
            elif pipeline is InputPipelineConfig.PER_SHARD_V1:
                pipeline = InputPipelineConfig.PER_HOST_V1
        deployment = Deployment(mode, self._batch_sizes[mode], self._cores(mode), pipeline)
        if deployment.on_host and pipeline is InputPipelineConfig.SLICED:
            raise ValueError(
                "Invalid TPUConfig `eval_training_input_configuration` value. SLICED mode only "
                "works on use_tpu = True."
            )
        deployment.validate(tpu_config.num_shards)
        return deployment

    def _cores(self, mode: str) -> tf.distribute.Strategy | None:
        """The strategy whose replicas are the cores; None: the host."""
        if mode == ModeKeys.EVAL and not self._eval_on_tpu:
            return None
        if self._strategy is not None:
            return self._strategy
        if not self._use_tpu:
            return None
        if self._config.tpu_config.num_cores_per_replica:
            raise NotImplementedError(
                "TPUConfig.num_cores_per_replica (model parallelism) needs a real TPU; leave it "
                "out to run data-parallel."
            )
        self._strategy = devices.tpu_strategy(self._config.cluster, self._config.master)
        return self._strategy

    def _train_stops(self, steps: int | None, max_steps: int | None) -> list[Any]:
        if self._use_tpu:
            check_given_steps(steps, "Train steps")
            check_given_steps(max_steps, "Train max_steps")
        return super()._train_stops(steps, max_steps)

    def _eval_stops(self, steps: int | None) -> list[Any]:
        if self._use_tpu and self._eval_on_tpu:
            check_given_steps(steps, "Eval steps")
        return super()._eval_stops(steps)

    # Calling the user's functions.

    def _call_input_fn(self, input_fn: Callable, mode: str) -> Any:
        """Calls input_fn for the host (`use_tpu=False`)."""
        return self._call_for_invocation(input_fn, self._deployment(mode))

    def _call_for_invocation(
        self,
        input_fn: Callable,
        deployment: Deployment,
        invocation: int | None = None,
        host: int = 0,
    ) -> Any:
        if "params" not in argument_names(input_fn):
            raise ValueError(
                f"input_fn {location(input_fn)} does not include params argument, required by "
                'TPUEstimator to pass batch size as params["batch_size"]'
            )
        params = self.params
        if deployment.input_batch_size is not None:
            params["batch_size"] = deployment.input_batch_size
        if invocation is not None:
            params["context"] = TPUContext(deployment, invocation, host)
        available = {"mode": deployment.mode, "params": params, "config": self.config}
        return call_input_fn(input_fn, available)

    def _call_model_fn(self, features, labels, mode: str, config: Any) -> EstimatorSpec:
        """Calls model_fn for the host."""
        tf1.logging.info("Running %s on CPU/GPU", mode)
        deployment = self._deployment(mode)
        tf1.logging.info("Calling model_fn.")
        spec = self._spec_of(features, labels, deployment)
        tf1.logging.info("Done calling model_fn.")
        if isinstance(spec, TPUEstimatorSpec):
            spec = spec.as_estimator_spec()
        if not isinstance(spec, EstimatorSpec):
            raise ValueError(
                f"model_fn should return an EstimatorSpec, but {location(self._model_fn)} "
                f"returned {type(spec).__name__}."
            )
        hooks = (*spec.training_hooks, *self._logging_hooks(spec.loss, mode, on_host=True))
        return spec._replace(training_hooks=hooks)

    def _spec_of(self, features, labels, deployment: Deployment) -> Any:
        names = argument_names(self._model_fn)
        if labels is not None and "labels" not in names:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        if "params" not in names:
            raise ValueError(
                f"model_fn {location(self._model_fn)} does not include params argument, required "
                "by TPUEstimator to pass batch size as params['batch_size']"
            )
        params = copy.deepcopy(self._params)
        params["use_tpu"] = not deployment.on_host
        if deployment.model_batch_size is not None:
            params["batch_size"] = deployment.model_batch_size
        if not deployment.on_host:
            params["context"] = TPUContext(deployment)
        available = {
            "labels": labels,
            "mode": deployment.mode,
            "params": params,
            "config": self.config,
        }
        arguments = {name: value for name, value in available.items() if name in names}
        return self._model_fn(features=features, **arguments)

    # Recording for several cores.

    def _record_train(self, graph: tf.Graph, input_fn: Callable) -> Recording:
        deployment = self._deployment(ModeKeys.TRAIN)
        if deployment.on_host:
            return super()._record_train(graph, input_fn)
        cores = self._on_cores(graph, input_fn, deployment)
        spec = cores.spec
        check_training_spec(spec, graph, deployment.num_replicas, self._model_fn)
        train_op = cores.runs(spec.train_op)
        loss = cores.mean(spec.loss)
        hooks = [*self._host_call(cores, deployment)]
        tpu_spec = EstimatorSpec(
            ModeKeys.TRAIN,
            loss=loss,
            train_op=train_op,
            training_hooks=[
                *hooks,
                *self._logging_hooks(loss, ModeKeys.TRAIN, on_host=False),
                *spec.training_hooks,
            ],
            scaffold=_scaffold(spec, cores),
        )
        return self._recorded(graph, cores, tpu_spec)

    def _record_eval(self, graph: tf.Graph, input_fn: Callable) -> Recording:
        deployment = self._deployment(ModeKeys.EVAL)
        if deployment.on_host:
            return super()._record_eval(graph, input_fn)
        cores = self._on_cores(graph, input_fn, deployment)
        spec = checked_tpu_spec(cores.spec, "evaluation")
        cores.runs(spec.loss)
        loss = cores.mean(spec.loss)
        host_call = self._host_call(cores, deployment)
        metrics = self._eval_metrics(cores, deployment) if spec.eval_metrics else None
        tpu_spec = EstimatorSpec(
            ModeKeys.EVAL,
            loss=loss,
            eval_metric_ops=metrics,
            evaluation_hooks=[*host_call, *spec.evaluation_hooks],
            scaffold=_scaffold(spec, cores),
        )
        return self._recorded(graph, cores, tpu_spec)

    def _record_predict(self, graph: tf.Graph, input_fn: Callable) -> Recording:
        deployment = self._deployment(ModeKeys.PREDICT)
        if deployment.on_host:
            return super()._record_predict(graph, input_fn)
        cores = self._on_cores(graph, input_fn, deployment)
        spec = checked_tpu_spec(cores.spec, "prediction")
        check_predictions(spec.predictions)
        predictions = self._outfed(cores, spec.predictions, deployment)
        host_call = self._host_call(cores, deployment)
        padding = cores.fed.padding or []
        if deployment.pipeline is InputPipelineConfig.BROADCAST:
            padding = padding[:1]
        real = tf.equal(tf.concat(padding, 0), 0)
        tpu_spec = EstimatorSpec(
            ModeKeys.PREDICT,
            predictions={k: tf1.boolean_mask(v, real) for k, v in predictions.items()},
            prediction_hooks=[*host_call, *spec.prediction_hooks],
            scaffold=_scaffold(spec, cores),
        )
        return self._recorded(graph, cores, tpu_spec)

    def _on_cores(self, graph: tf.Graph, input_fn: Callable, deployment: Deployment) -> Cores:
        tf1.train.create_global_step(graph)
        fed = self._feed(input_fn, deployment)
        check_static(fed.cores[0], input_fn)
        tf1.logging.info("Calling model_fn.")
        cores = Cores(
            fed,
            deployment.strategy,
            lambda features, labels: self._spec_of(features, labels, deployment),
            inside=one_shard_of,
        )
        tf1.logging.info("Done calling model_fn.")
        return cores

    def _feed(self, input_fn: Callable, deployment: Deployment) -> feeding.Fed:
        """The input of all cores; each host draws its own cores', on itself."""
        parts = []
        for index, host in enumerate(deployment.feeding_hosts):
            with tf1.device(host.device):
                parts.append(self._feed_from(index, len(host.replicas), input_fn, deployment))
        return feeding.together(parts, [host.replicas for host in deployment.feeding_hosts])

    def _feed_from(
        self, host: int, cores: int, input_fn: Callable, deployment: Deployment
    ) -> feeding.Fed:
        """The input of a host's cores, as `TPUConfig.per_host_input_for_training` says."""
        pipeline = deployment.pipeline
        first = host * cores if pipeline is InputPipelineConfig.PER_SHARD_V1 else host

        def call(core: int) -> Any:
            return self._call_for_invocation(input_fn, deployment, first + core, host)

        if deployment.mode == ModeKeys.PREDICT:
            batch_size = deployment.input_batch_size or 0  # validate() saw that it is given
            if pipeline is InputPipelineConfig.BROADCAST:
                return feeding.padded_broadcast(call, cores, batch_size)
            whole = pipeline is not InputPipelineConfig.PER_HOST_V2
            return feeding.padded(call, cores, batch_size, whole)
        if pipeline is InputPipelineConfig.PER_SHARD_V1:
            return feeding.per_core(call, cores)
        if pipeline is InputPipelineConfig.PER_HOST_V2:
            return feeding.per_host_v2(call, cores)
        if pipeline is InputPipelineConfig.BROADCAST:
            return feeding.broadcast(call, cores)
        return feeding.per_host(call, cores, self._batch_axis)

    def _outfed(self, cores: Cores, tensors: Any, deployment: Deployment) -> Any:
        """Host stand-ins for a list or dict of what the cores computed."""
        same = deployment.pipeline is InputPipelineConfig.BROADCAST
        return tf.nest.map_structure(cores.first if same else cores.concat, tensors)

    def _eval_metrics(self, cores: Cores, deployment: Deployment) -> dict[str, tuple[Any, Any]]:
        """Name -> (value, update): what metric_fn makes of what all cores computed."""
        function, tensors = cores.spec.eval_metrics
        stand_ins = self._outfed(cores, tensors, deployment)
        with cores.refusing_captures(function, "metric_fn") as results:
            metrics = checked_eval_metric_ops(call_on_host((function, stand_ins)))
            results += tf.nest.flatten(metrics)
        return metrics

    def _host_call(self, cores: Cores, deployment: Deployment) -> list[HostCallHook]:
        host_call = getattr(cores.spec, "host_call", None)
        if not host_call or not host_call[1]:
            return []
        function, tensors = host_call
        return [HostCallHook(call_on_host((function, self._outfed(cores, tensors, deployment))))]

    def _recorded(self, graph: tf.Graph, cores: Cores, spec: EstimatorSpec) -> Recording:
        return Recording(
            graph,
            spec,
            input_hooks=cores.fed.hooks,
            splices=(cores.splice(),),
            strategy=cores.strategy,
            on_cores=cores.variables,
            iterations=self._iterations,
        )

    def _logging_hooks(self, loss: Any, mode: str, *, on_host: bool) -> list[Any]:
        """Log the loss, `global_step/sec` and `examples/sec`.

        The rates come every `log_step_count_steps / iterations_per_loop` steps, on the host too:
        that is how the original reads `log_step_count_steps`. It did not log the loss on the host;
        we do.

        Source: `TPUEstimator.__init__` and `_augment_model_fn`, tensorflow_estimator 2.15.
        """
        if mode != ModeKeys.TRAIN or not self._log_every:
            return []
        tensors = {"loss": loss, "step": tf1.train.get_global_step()}
        output_dir = self.model_dir if self._config.save_summary_steps else None
        batch_size = self._batch_sizes[mode]
        if self._iterations.unit == "seconds":
            every = {"every_n_secs": self._iterations.value}
            loss_hook = tf1.train.LoggingTensorHook(tensors, **every)
            rates = ExamplesPerSecondHook(
                batch_size, every_n_steps=None, output_dir=output_dir, **every
            )
            return [loss_hook, rates]
        runs = math.ceil(self._log_every / self._iterations.value)
        rates = ExamplesPerSecondHook(batch_size, every_n_steps=runs, output_dir=output_dir)
        if not on_host:
            rates._set_steps_per_run(self._iterations.value)
        every_n_iter = self._log_every if on_host else runs
        return [tf1.train.LoggingTensorHook(tensors, every_n_iter=every_n_iter), rates]


def _scaffold(spec: Any, cores: Cores) -> tf1.train.Scaffold | None:
    """Calls scaffold_fn, on the host.

    Raises:
        ValueError: It returns no Scaffold, or uses what the cores compute from a batch.
    """
    scaffold_fn = getattr(spec, "scaffold_fn", None)
    if scaffold_fn is None:
        return None
    graph = tf1.get_default_graph()
    before = len(graph.get_operations())
    scaffold = scaffold_fn()
    if scaffold is None:
        raise ValueError("TPUEstimatorSpec.scaffold_fn returns None, which is not allowed")
    capture = cores.capture(since=before)
    if capture and capture.user:
        raise ValueError(
            f"scaffold_fn {location(scaffold_fn)}: op {capture.user.name} depends on a TPU "
            "computation, which is not allowed. It was made at "
            f"{user_line(capture.user.traceback)}. What the cores compute reaches the host through "
            "a host_call."
        )
    return scaffold
