"""The results of model_fns and input_fns of `tf.contrib.learn`, and the names in them.

Sources: `tf.contrib.learn` model_fn.py, input_fn_utils.py and constants.py, TF 1.15.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy import estimator as core


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


class MetricKey:
    """Names of what the canned Estimators measure."""

    LOSS = "loss"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    CLASS_AUC = "auc/class%d"
    CLASS_AUC_PR = "auc_precision_recall/class%d"
    PREDICTION_MEAN = "labels/prediction_mean"
    CLASS_PREDICTION_MEAN = "labels/prediction_mean/class%d"
    CLASS_LOGITS_MEAN = "labels/logits_mean/class%d"
    CLASS_PROBABILITY_MEAN = "labels/probability_mean/class%d"
    LABEL_MEAN = "labels/actual_label_mean"
    CLASS_LABEL_MEAN = "labels/actual_label_mean/class%d"
    ACCURACY = "accuracy"
    ACCURACY_BASELINE = "accuracy/baseline_label_mean"
    ACCURACY_MEAN = "accuracy/threshold_%f_mean"
    PRECISION_MEAN = "precision/positive_threshold_%f_mean"
    RECALL_MEAN = "recall/positive_threshold_%f_mean"


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
    ) -> ModelFnOps:
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

    def estimator_spec(
        self,
        default_serving_output_alternative_key: str | None = None,
        *,
        of_examples: bool = False,
    ) -> Any:
        """The same as a `tf.estimator.EstimatorSpec`.

        Args:
            default_serving_output_alternative_key: The output that is served by default; the only
                one if None.
            of_examples: True if one string tensor is served: outputs are then those of their
                problem type, and not only dicts of tensors.
        """
        outputs = {
            _ONLY if name is None else name: _export_output(kind, tensors, of_examples)
            for name, (kind, tensors) in (self.output_alternatives or {}).items()
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


_ONLY = "default_input_alternative:None"  # a signature of an output without a name


def _export_output(kind: int, tensors: Mapping[str, Any], of_examples: bool) -> Any:
    if of_examples and kind in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        given = {
            "classes": tensors.get(PredictionKey.CLASSES),
            "scores": tensors.get(PredictionKey.PROBABILITIES),
        }
        if given != {"classes": None, "scores": None}:
            return core.export.ClassificationOutput(**given)
    if of_examples and kind == ProblemType.LINEAR_REGRESSION and len(tensors) == 1:
        return core.export.RegressionOutput(*tensors.values())
    return core.export.PredictOutput(tensors)


def build_parsing_serving_input_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A serving_input_fn that takes serialized `tf.Example`s, named "examples".

    Args:
        feature_spec: As for `tf.parse_example`.
        default_batch_size: Number of examples; any if None.
    """

    def input_fn() -> InputFnOps:
        examples = tf.compat.v1.placeholder(
            tf.string, [default_batch_size], name="input_example_tensor"
        )
        features = tf.compat.v1.parse_example(examples, feature_spec)
        return InputFnOps(features, None, {"examples": examples})

    return input_fn


def build_default_serving_input_fn(
    features: Mapping[str, tf.Tensor], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A serving_input_fn that takes the features themselves.

    Args:
        features: Tensors that have the types and shapes of the features.
        default_batch_size: Number of examples; any if None.
    """

    def placeholder(tensor: tf.Tensor) -> tf.Tensor:
        shape = [default_batch_size, *tensor.shape.as_list()[1:]]
        return tf.compat.v1.placeholder(tensor.dtype, shape, name=tensor.op.name)

    def input_fn() -> InputFnOps:
        placeholders = {name: placeholder(tensor) for name, tensor in features.items()}
        return InputFnOps(placeholders, None, placeholders)

    return input_fn
