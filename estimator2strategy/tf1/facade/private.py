"""Private names of tensorflow_estimator and of TensorFlow that programs import all the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine.record.input_fn import DatasetInitializerHook

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
