"""`tf.contrib.learn` of TF 1.15, as far as programs of its later years used it.

`Estimator` and `ModelFnOps` are early forms of those of `tf.estimator`. What drives an Estimator is
in `learn_experiment.py`.
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy import estimator as core
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("learn")


class ModeKeys:
    """The modes in which model_fn is called."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError where `key` is no mode."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


class PredictionKey:
    """Names of what the canned Estimators predict."""

    CLASSES = "classes"
    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    LOGISTIC = "logistic"
    SCORES = "scores"
    TOP_K = "top_k"
    GENERIC = "output"


class ProblemType:
    """The kinds of problem that a model solves."""

    UNSPECIFIED = 0
    CLASSIFICATION = 1
    LINEAR_REGRESSION = 2
    LOGISTIC_REGRESSION = 3


InputFnOps = collections.namedtuple("InputFnOps", ("features", "labels", "default_inputs"))


class ModelFnOps(
    collections.namedtuple(
        "ModelFnOps",
        (
            "predictions",
            "loss",
            "train_op",
            "eval_metric_ops",
            "output_alternatives",
            "training_chief_hooks",
            "training_hooks",
            "scaffold",
            "mode",
        ),
    )
):
    """The result of a model_fn of `learn.Estimator`.

    Args: those of `tf.estimator.EstimatorSpec` of the same name; `output_alternatives` is a dict of
    name to (problem type, dict of tensors), for serving.

    Raises:
        ValueError: What the mode needs is missing.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        output_alternatives: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
    ):
        ModeKeys.validate(mode)
        if train_op is None and mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        if loss is None and mode != ModeKeys.INFER:
            raise ValueError("Missing loss.")
        if predictions is None and mode == ModeKeys.INFER:
            raise ValueError("Missing predictions.")
        return super().__new__(
            cls,
            predictions,
            loss,
            train_op,
            eval_metric_ops or {},
            output_alternatives,
            list(training_chief_hooks or ()),
            list(training_hooks or ()),
            scaffold,
            mode,
        )

    def estimator_spec(self, default_serving_output_alternative_key: str | None = None) -> Any:
        """The same as a `tf.estimator.EstimatorSpec`."""
        outputs = {
            name: core.export.PredictOutput(tensors)
            for name, (_, tensors) in (self.output_alternatives or {}).items()
        }
        if default_serving_output_alternative_key is not None:
            outputs["serving_default"] = outputs[default_serving_output_alternative_key]
        elif len(outputs) == 1:
            (outputs["serving_default"],) = outputs.values()
        return core.EstimatorSpec(
            self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=self.eval_metric_ops,
            export_outputs=outputs or None,
            training_chief_hooks=self.training_chief_hooks,
            training_hooks=self.training_hooks,
            scaffold=self.scaffold,
        )


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
        metric_fn: Callable,
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
        model_fn: Callable | None = None,
        model_dir: str | None = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Callable | None = None,
    ):
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        taken = inspect.signature(model_fn).parameters
        self._metrics: Mapping[str, MetricSpec] = {}

        def core_model_fn(features, labels, mode, params, config):
            if feature_engineering_fn is not None:
                features, labels = feature_engineering_fn(features, labels)
            offered = {"mode": mode, "params": params, "config": config, "model_dir": model_dir}
            given = {name: value for name, value in offered.items() if name in taken}
            made = model_fn(features, labels, **given)
            if isinstance(made, ModelFnOps):
                spec = made.estimator_spec()
            elif isinstance(made, tuple) and len(made) == 3:
                spec = ModelFnOps(mode, *made).estimator_spec()
            else:
                spec = made
            if mode != ModeKeys.EVAL or not self._metrics:
                return spec
            more = {
                name: metric.create_metric_ops(features, labels, spec.predictions)
                for name, metric in self._metrics.items()
            }
            return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})

        super().__init__(core_model_fn, model_dir, config, params)

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
        """Trains, and returns itself; `monitors` are SessionRunHooks."""
        _no_arrays(x, y)
        self.train(input_fn, hooks=monitors, steps=steps, max_steps=max_steps)
        return self

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[str, MetricSpec] | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """The metrics of the model_fn, and `metrics`."""
        _no_arrays(x, y, feed_fn)
        self._metrics = metrics or {}
        try:
            return super().evaluate(
                input_fn, steps=steps, hooks=hooks, checkpoint_path=checkpoint_path, name=name
            )
        finally:
            self._metrics = {}

    def predict(  # type: ignore[override]
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Iterable[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """Predictions one by one, or batch by batch; a list of them unless `as_iterable`."""
        _no_arrays(x)
        keys = list(outputs) if outputs is not None else None
        made = super().predict(
            input_fn, predict_keys=keys, yield_single_examples=not iterate_batches
        )
        return made if as_iterable else list(made)


def _no_arrays(*arrays: Any) -> None:
    if any(a is not None for a in arrays):
        raise UnsupportedError(
            "tf.contrib.learn takes arrays through input_fn only: "
            "input_fn=tf.estimator.inputs.numpy_input_fn(x, y, ...)."
        )


def replace_monitors_with_hooks(monitors_or_hooks: Iterable[Any] | None, estimator: Any) -> list:
    """The hooks of a list in which there may be monitors, which came before hooks.

    Raises:
        UnsupportedError: There is one.
    """
    del estimator
    hooks = list(monitors_or_hooks or [])
    for hook in hooks:
        if not isinstance(hook, tf.compat.v1.train.SessionRunHook):
            raise UnsupportedError(
                f"{type(hook).__name__} is a monitor. Monitors are not supported: write a "
                "tf.train.SessionRunHook."
            )
    return hooks
