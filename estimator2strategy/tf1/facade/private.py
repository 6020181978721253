"""Private names of tensorflow_estimator and of TensorFlow that programs import all the same.

Copies of canned Estimators use those of estimator.py; programs that write a head of their own use
those of TF 1's heads.

Sources: tensorflow_estimator 1.15 estimator.py, canned/head.py and head/base_head.py.
"""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine.record.input_fn import DatasetInitializerHook
from estimator2strategy.estimator.heads import head_checks, v1

tf1 = tf.compat.v1

LOSS_METRIC_KEY = "loss"
AVERAGE_LOSS_METRIC_KEY = "average_loss"


def load_global_step_from_checkpoint_dir(checkpoint_dir: str) -> int:
    """The global step of the latest checkpoint in a folder; 0 where there is none.

    Source: `_load_global_step_from_checkpoint_dir`, tensorflow_estimator 1.15 estimator.py.
    """
    try:
        reader = tf1.train.NewCheckpointReader(tf.train.latest_checkpoint(checkpoint_dir))
        return cast(int, reader.get_tensor(tf1.GraphKeys.GLOBAL_STEP))
    except Exception:  # as the original: whatever is wrong, training starts at 0
        return 0


def fn_args(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the arguments that a function, a partial or a callable object takes."""
    return tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    )


def parse_input_fn_result(result: Any) -> tuple[Any, Any, list[Any]]:
    """(features, labels, hooks) of what an input_fn returned.

    Source: `parse_input_fn_result`, tensorflow_estimator 1.15 util.py.
    """
    hooks: list[Any] = []
    if isinstance(result, (tf.data.Dataset, tf1.data.Dataset)):
        iterator = tf1.data.make_initializable_iterator(result)
        hooks.append(DatasetInitializerHook(iterator))
        result = iterator.get_next()
    if isinstance(result, (list, tuple)):
        if len(result) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        return result[0], result[1], hooks
    return result, None, hooks


def should_run_distribute_coordinator(config: Any) -> bool:
    """Always False: one `train_and_evaluate` serves every cluster here."""
    del config
    return False


def estimator_export(*unused: str, **unused_kwargs: Any) -> Callable[..., Any]:
    """The decorator that put a symbol into the public `tf.estimator`: here it changes nothing."""
    return lambda symbol: symbol


def register_dense_tensor_like_type(tensor_type: type) -> None:
    """TF 1.15 kept a list of types that behave like tensors.

    Raises:
        TypeError: The type lacks the properties `name` and `dtype`.

    TF2 asks `tensor_type.__tf_tensor__` and the conversion registry instead, so that nothing is
    left to do.
    """
    for attribute in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, attribute, None), property):
            raise TypeError(f"Type {tensor_type.__name__} does not define a `{attribute}` property")


def from_proto_fn(variable_def: Any, import_scope: str | None = None) -> Any:
    """Makes a variable of its description in a MetaGraph."""
    return tf1.Variable.from_proto(variable_def, import_scope=import_scope)


def to_proto_fn(variable: Any, export_scope: str | None = None) -> Any:
    """The description of a variable in a MetaGraph."""
    return variable.to_proto(export_scope=export_scope)


def experimental_list_devices() -> list[str]:
    """Names of the devices that graphs of this process can use."""
    with tf1.Session(graph=tf.Graph()) as session:
        return [device.name for device in session.list_devices()]


def _raw(name: str) -> Callable[..., Any]:
    """An op by its generated name of TF 1.15, which took its arguments by position too."""
    raw = getattr(tf.raw_ops, "".join(part.capitalize() for part in name.split("_")))

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(raw).bind(**dict(zip(names, args, strict=False)), **kwargs)
        return raw(**bound.arguments)

    names = list(inspect.signature(raw).parameters)
    call.__name__ = name
    return call


class _TrainingOps:
    """`training_ops`: the update rules of the optimizers, as ops."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _raw(name)


training_ops = _TrainingOps()

VALID_MODEL_FN_ARGS = {"features", "labels", "mode", "params", "self", "config"}


class Gauge:
    """The last values that a program has set, by labels, as those of `monitoring` in TensorFlow.

    Nothing reads them but the program: this package sends no statistics.
    """

    def __init__(self, unset: Any):
        self._unset = unset
        self._cells: dict[tuple[str, ...], GaugeCell] = {}

    def get_cell(self, *labels: str) -> GaugeCell:
        """The cell of these labels."""
        return self._cells.setdefault(labels, GaugeCell(self._unset))


class GaugeCell:
    """One value of a gauge."""

    def __init__(self, value: Any):
        self._value = value

    def set(self, value: Any) -> None:
        self._value = value

    def value(self) -> Any:
        return self._value


# Which methods of Estimators were called, and the kinds of canned ones that were made.
estimator_api_gauge, canned_estimator_api_gauge = Gauge(False), Gauge("")


def check_checkpoint_available(model_dir: str) -> None:
    """Raises ValueError if a folder has no checkpoint."""
    if not tf.train.latest_checkpoint(model_dir):
        raise ValueError(f"Could not find trained model in model_dir: {model_dir}.")


def dict_to_str(dictionary: Mapping[str, Any]) -> str:
    """Results as the log shows them, in the order of their names; bytes are left out."""
    shown = sorted(item for item in dictionary.items() if not isinstance(item[1], bytes))
    return ", ".join(f"{name} = {value}" for name, value in shown)


def extract_metric_update_ops(
    eval_dict: Mapping[str, tuple[Any, Any]], distribution: Any = None
) -> tuple[Any, dict[str, Any]]:
    """The update ops of metrics as one op, None if there are none; and their values.

    Args:
        eval_dict: Name -> value and update op.
        distribution: The strategy of the replicas that the update ops are of.
    """
    in_order = dict(sorted(eval_dict.items()))
    group = distribution.group if distribution else lambda op: op
    updates = [group(update) for _, update in in_order.values()]
    values = {name: value for name, (value, _) in in_order.items()}
    return (tf.group(*updates) if updates else None), values


_ABSTRACT = "Calling an abstract method."


class Head(abc.ABC):  # noqa: B024 (see below)
    """The interface of TF 1's heads.

    A subclass need not implement all of it: Python 3 ignored the `__metaclass__` of the original.

    Source: `_Head`, tensorflow_estimator 1.15 canned/head.py.
    """

    @property
    def name(self) -> str | None:
        """Appended to the keys of metrics and summaries."""
        raise NotImplementedError(_ABSTRACT)

    @property
    def logits_dimension(self) -> int:
        """Size of the last dimension of the logits."""
        raise NotImplementedError(_ABSTRACT)

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        """The loss, and what it is made of: a `LossSpec`."""
        raise NotImplementedError(_ABSTRACT)

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[..., Any] | None = None,
        regularization_losses: Any = None,
    ) -> Any:
        """The spec that a model_fn returns.

        Raises:
            NotImplementedError: A subclass implements neither this nor the spec for TPUs.
        """
        arguments = (features, mode, logits, labels, optimizer, train_op_fn, regularization_losses)
        try:
            return self._create_tpu_estimator_spec(*arguments).as_estimator_spec()
        except NotImplementedError as error:
            raise NotImplementedError(
                "Subclasses of _Head must implement `create_estimator_spec()` or "
                "_create_tpu_estimator_spec()."
            ) from error

    def _create_tpu_estimator_spec(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError("TPUEstimatorSpec not available for this model head.")


Head.register(v1._V1)  # type: ignore[type-abstract]
Head.register(v1._Multi)

binary_head = v1.summed(v1.binary_classification_head)
multi_class_head = v1.summed(v1.multi_class_head)
regression_head = v1.summed(v1.regression_head)


def summary_key(head_name: str | None, val: str) -> str:
    """The key of a metric, with the name of its head if it has one."""
    return f"{val}/{head_name}" if head_name else val


# Of TF 2 a loss_fn may take loss_reduction, too.
validate_loss_fn_args = functools.partial(head_checks.validate_loss_fn_args, optional=("features",))


def indicator_labels_mean(labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The mean of labels that are 0 or 1."""
    return tf1.metrics.mean(tf.cast(labels, tf.float32), weights, name=name)


def predictions_mean(predictions: Any, weights: Any = None, name: str | None = None) -> Any:
    """The mean of predictions."""
    return tf1.metrics.mean(tf.cast(predictions, tf.float32), weights, name=name)


def auc(
    labels: Any, predictions: Any, weights: Any = None, curve: str = "ROC", name: str | None = None
) -> Any:
    """The area under a curve."""
    predictions = tf.cast(predictions, tf.float32)
    return tf1.metrics.auc(labels, predictions, weights, curve=curve, name=name)


def update_metric_with_broadcast_weights(eval_metric: Any, values: Any, weights: Any) -> None:
    """Adds values to a Keras metric; a column of weights counts for every column of theirs."""
    values = tf.cast(values, tf.float32)
    if weights is not None:
        weights = weights * tf.ones_like(values)
    eval_metric.update_state(values=values, sample_weight=weights)
