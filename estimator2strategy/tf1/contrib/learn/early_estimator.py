"""`tf.contrib.learn` of TF 1.15.

`Estimator` and `ModelFnOps` are early forms of those of `tf.estimator`. `canned_models.py` has the
Estimators of ready models, `experiment_runs.py` what drives an Estimator.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import tensorflow as tf

from estimator2strategy import estimator as core
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.contrib.learn import python_inputs
from estimator2strategy.tf1.contrib.learn.model_fn_ops import InputFnOps, ModeKeys, ModelFnOps
from estimator2strategy.tf1.contrib.learn.monitor_bases import replace_monitors_with_hooks


class RunConfig(core.RunConfig):
    """Settings of one Estimator, as `tf.estimator.RunConfig`, with some arguments more.

    Args: those of `tf.estimator.RunConfig` of the same name, and

        master: Address of the session; None: what `TF_CONFIG` says.
        num_cores: Threads between and in ops, in `tf_config`; 0: TensorFlow's choice.
        log_device_placement: In `tf_config`.
        gpu_memory_fraction: In `tf_config`.
        save_checkpoints_secs: 0 is the default: 600, unless steps are given.
        evaluation_master: Address of the session that evaluates.

    Raises:
        ValueError: As `tf.estimator.RunConfig`.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: int | None = 0,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: str | None = None,
        session_config: Any = None,
        session_creation_timeout_secs: int = 7200,
    ):
        saving: dict[str, Any] = {"save_checkpoints_steps": save_checkpoints_steps}
        if save_checkpoints_secs != 0:
            saving["save_checkpoints_secs"] = save_checkpoints_secs
        elif save_checkpoints_steps is None:
            saving = {}
        super().__init__(
            model_dir,
            tf_random_seed,
            save_summary_steps,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            protocol=protocol,
            session_creation_timeout_secs=session_creation_timeout_secs,
            **saving,
        )
        if master is not None:
            self._master = master
        if evaluation_master:
            self._evaluation_master = evaluation_master
        self._tf_config = tf.compat.v1.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf.compat.v1.GPUOptions(
                per_process_gpu_memory_fraction=gpu_memory_fraction
            ),
        )
        self._environment = json.loads(os.environ.get("TF_CONFIG") or "{}").get(
            "environment", "local"
        )

    @property
    def tf_config(self) -> Any:
        """A ConfigProto of the sizes that were given."""
        return self._tf_config

    @property
    def environment(self) -> str:
        """Either "local" or "cloud", as `TF_CONFIG` says."""
        return cast(str, self._environment)


class MetricSpec:
    """A metric function, and which predictions, labels and weights it is called with.

    Args:
        metric_fn: Takes predictions, labels and perhaps weights.
        prediction_key: Key of predictions, where these are a dict.
        label_key: Key of labels, where these are a dict.
        weight_key: Key of features that holds the weights.
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ):
        self.metric_fn = metric_fn
        self.prediction_key = prediction_key
        self.label_key = label_key
        self.weight_key = weight_key

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """The result of the metric function.

        Raises:
            ValueError: A key is needed and missing, or names nothing.
        """
        arguments = {
            "predictions": _picked(predictions, self.prediction_key, "prediction"),
            "labels": _picked(labels, self.label_key, "label"),
        }
        if self.weight_key is not None:
            arguments["weights"] = inputs[self.weight_key]
        names = inspect.signature(self.metric_fn).parameters
        if {"predictions", "labels"} <= names.keys():
            return self.metric_fn(**arguments)
        weights = {k: v for k, v in arguments.items() if k == "weights"}
        return self.metric_fn(arguments["predictions"], arguments["labels"], **weights)


def _picked(values: Any, key: str | None, what: str) -> Any:
    if not isinstance(values, Mapping):
        return values
    if key is not None:
        if key not in values:
            raise ValueError(f"{what}_key {key!r} is not among {sorted(values)}.")
        return values[key]
    if len(values) != 1:
        raise ValueError(f"MetricSpec without specified {what}_key requires {what}s tensor or one.")
    return next(iter(values.values()))


class Estimator(core.Estimator):
    """`learn.Estimator`: a `tf.estimator.Estimator` with `fit`, whose model_fn makes `ModelFnOps`.

    Args:
        model_fn: Takes features, labels and perhaps mode, params, config; returns `ModelFnOps`, an
            EstimatorSpec or (predictions, loss, train_op).
        model_dir: As for `tf.estimator.Estimator`.
        config: As for `tf.estimator.Estimator`.
        params: As for `tf.estimator.Estimator`.
        feature_engineering_fn: Makes features and labels of features and labels.
    """

    _of_tf115 = True

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: str | None = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ):
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        taken = inspect.signature(model_fn).parameters
        if params is None and "params" in taken:
            tf.compat.v1.logging.warn(
                f"Estimator's model_fn ({model_fn}) includes params argument, but params are not "
                "passed to Estimator."
            )
        self._metrics: Mapping[Any, Any] = {}
        self._served: dict[str, Any] = {}  # what an export asks of `estimator_spec`

        def core_model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
            if feature_engineering_fn is not None:
                features, labels = feature_engineering_fn(features, labels)
            offered = {"mode": mode, "params": params, "config": config, "model_dir": model_dir}
            given = {name: value for name, value in offered.items() if name in taken}
            made = model_fn(features, labels, **given)
            if isinstance(made, ModelFnOps):
                spec = made.estimator_spec(**self._served)
            elif isinstance(made, tuple) and len(made) == 3:
                spec = ModelFnOps(mode, *made).estimator_spec()
            else:
                spec = made
            if mode != ModeKeys.EVAL or not self._metrics:
                return spec
            more = dict(
                _metric_ops(name, metric, features, labels, spec.predictions)
                for name, metric in self._metrics.items()
            )
            return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})

        # It takes params in any case, so only the program's model_fn may have missed them.
        super().__init__(core_model_fn, model_dir, config, {} if params is None else params)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Any = None,
        max_steps: int | None = None,
    ) -> Estimator:
        """Trains, and returns itself.

        Args:
            x, y: Examples and labels as arrays, in place of `input_fn`; they are shuffled.
            input_fn: As for `tf.estimator.Estimator.train`.
            batch_size: For arrays; all examples by default.
            monitors: Monitors, or SessionRunHooks.
            steps, max_steps: As for `tf.estimator.Estimator.train`.
        """
        _check_input(x, y, input_fn)
        if x is not None:
            python_inputs.SKCompat(self).fit(x, y, batch_size, steps, max_steps, monitors)
            return self
        self.train(input_fn, hooks=monitors, steps=steps, max_steps=max_steps)
        return self

    def train(
        self,
        input_fn: Any,
        hooks: Any = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        """Trains as `tf.estimator.Estimator` does, but takes numbers below 1, too.

        As in TF 1.15, `steps` below 1 is one step: its hook stopped after a step, never before.
        """
        if steps is None and max_steps is not None and max_steps < 1:
            return self
        if steps is not None:
            steps = max(steps, 1)
        hooks = replace_monitors_with_hooks(hooks, self)
        super().train(input_fn, hooks, steps, max_steps, saving_listeners)
        return self

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[Any, Any] | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """The metrics of the model_fn, and `metrics`.

        Args:
            x, y: Examples and labels as arrays, in place of `input_fn`.
            batch_size: For arrays; all examples by default.
            metrics: MetricSpecs by name; or functions of predictions and labels by name, or by
                (name, key of predictions).
            input_fn, steps, name, checkpoint_path, hooks: As for `tf.estimator.Estimator`.

        Raises:
            NotFittedError: There is no checkpoint.
        """
        _check_input(x, y, input_fn, feed_fn)
        if x is not None:
            input_fn = python_inputs.input_fn_of(x, y, batch_size)
        self._check_is_fitted(checkpoint_path)
        self._metrics = self._named_metrics(metrics or {})
        try:
            return super().evaluate(
                input_fn, steps=steps, hooks=hooks, checkpoint_path=checkpoint_path, name=name
            )
        finally:
            self._metrics = {}

    def _named_metrics(self, metrics: Mapping[Any, Any]) -> Mapping[Any, Any]:
        return metrics

    def predict(  # type: ignore[override]
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Iterable[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """Predictions one by one, or batch by batch.

        Args:
            x: Examples as an array, in place of `input_fn`.
            input_fn: As for `tf.estimator.Estimator`; tensors that are constant are one batch.
            batch_size: For arrays; all examples by default.
            outputs: Keys of the predictions; all by default.
            as_iterable: False for arrays, of all of `x` or of the first batch of `input_fn`.
            iterate_batches: True for batches.

        Raises:
            NotFittedError: There is no checkpoint.
        """
        _check_input(x, None, input_fn)
        if x is not None:
            if not as_iterable:
                return python_inputs.SKCompat(self).predict(x, batch_size or 128, outputs)
            input_fn = python_inputs.input_fn_of(x, None, batch_size)
        in_batches = iterate_batches or not as_iterable
        made = self._predictions(input_fn, outputs, in_batches=in_batches)
        return made if as_iterable else next(made)

    def e2s_batches(
        self, input_fn: Callable[..., Any], outputs: Iterable[str] | None
    ) -> list[dict[str, Any]]:
        """All predictions (or `outputs`) batch by batch, of classes that give one alone, too."""
        return list(self._predictions(input_fn, outputs, in_batches=True))

    def _predictions(
        self, input_fn: Callable[..., Any], outputs: Iterable[str] | None, *, in_batches: bool
    ) -> Iterator[Any]:
        self._check_is_fitted()
        constant = False

        def observed(*args: Any, **kwargs: Any) -> Any:
            nonlocal constant
            made = input_fn(*args, **kwargs)
            constant = not isinstance(made, tf.data.Dataset) and _is_constant()
            return made

        # A hook's parameters are asked for by name.
        functools.update_wrapper(observed, input_fn, assigned=())
        keys = list(outputs) if outputs else None
        for batch in super().predict(observed, predict_keys=keys, yield_single_examples=False):
            yield from [batch] if in_batches else _examples(batch)
            if constant:
                return

    def export_savedmodel(  # type: ignore[override]
        self,
        export_dir_base: str,
        serving_input_fn: Callable[[], Any],
        default_output_alternative_key: str | None = None,
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        **more: Any,
    ) -> bytes:
        """Writes a SavedModel, and returns its path.

        Args:
            export_dir_base: The folder to write a folder into, which is named after the time.
            serving_input_fn: Returns `InputFnOps` or a ServingInputReceiver.
            default_output_alternative_key: The output that is served by default.
            assets_extra, as_text, checkpoint_path: As for `tf.estimator.Estimator`.
            **more: As for `tf.estimator.Estimator.export_savedmodel`.
        """

        def receiver() -> Any:
            made = serving_input_fn()
            key = default_output_alternative_key
            self._served = {"default_serving_output_alternative_key": key}
            if not isinstance(made, InputFnOps):
                return made
            inputs = list(made.default_inputs.values())
            self._served["of_examples"] = len(inputs) == 1 and inputs[0].dtype == tf.string
            return core.export.ServingInputReceiver(made.features, made.default_inputs)

        try:
            return super().export_savedmodel(
                export_dir_base, receiver, assets_extra, as_text, checkpoint_path, **more
            )
        finally:
            self._served = {}

    def _check_is_fitted(self, checkpoint_path: str | None = None) -> None:
        if checkpoint_path is None and self.latest_checkpoint() is None:
            raise NotFittedError(f"Couldn't find trained model at {self.model_dir}.")


class NotFittedError(ValueError, AttributeError):
    """An Estimator is asked for metrics or predictions before it was trained."""


def _check_input(x: Any, y: Any, input_fn: Any, feed_fn: Any = None) -> None:
    if feed_fn is not None:
        raise UnsupportedError("tf.contrib.learn: feed_fn is not supported. Give input_fn.")
    if x is None and input_fn is None:
        raise ValueError("Either x or input_fn must be provided.")
    if input_fn is not None and (x is not None or y is not None):
        raise ValueError("Can not provide both input_fn and x or y.")


def _is_constant() -> bool:
    """True if the graph in which an input_fn was called has nothing that takes a next batch."""
    operations = tf.compat.v1.get_default_graph().get_operations()
    return not any(op.type.startswith(_NEXT) for op in operations)


_NEXT = ("IteratorGetNext", "OneShotIterator", "QueueDequeue", "Reader")


def _examples(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, Mapping):
        yield from batch
        return
    for number in range(len(next(iter(batch.values())))):
        yield {key: values[number] for key, values in batch.items()}


def _metric_ops(
    name: Any, metric: Any, features: Any, labels: Any, predictions: Any
) -> tuple[str, Any]:
    """The name of a metric, and its ops.

    Raises:
        ValueError: A function is to take one of several predictions, and is not said which.
    """
    if isinstance(metric, MetricSpec):
        return name, metric.create_metric_ops(features, labels, predictions)
    if isinstance(labels, Mapping) and len(labels) == 1:
        (labels,) = labels.values()
    if isinstance(name, tuple):
        name, key = name
        own = labels[key] if isinstance(labels, Mapping) and key in labels else labels
        return name, metric(predictions[key], own)
    if isinstance(predictions, Mapping):
        raise ValueError(
            "Metrics passed provide only name, no prediction, but predictions are dict. "
            f"Metrics: {name}, Labels: {labels}."
        )
    return name, metric(predictions, labels)
