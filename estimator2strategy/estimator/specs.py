"""The specs that a `model_fn` returns. They are immutable, and checked when they are made.

    def model_fn(features, labels, mode):
        ...
        return EstimatorSpec(mode, loss=loss, train_op=train_op)

A spec made here either fits the graph that `model_fn` is building or raises inside `model_fn`, so
that the traceback ends at the user's own line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.runtime.hooks import HostCallHook
from estimator2strategy.engine.wrong_argument import checked, wrong_argument
from estimator2strategy.estimator import export
from estimator2strategy.estimator.contract_rules import SPEC_RULES

# Ops inside of which a variable can be written without an assign op in the graph itself.
_FUNCTION_OPS = frozenset(["If", "While", "PartitionedCall", "StatefulPartitionedCall"])


# Name of a field in messages -> the field, if the two differ.
_NAMES = {"prediction values": " (predictions)"}


class _EstimatorSpecFields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[str, tuple[Any, Any]]
    export_outputs: Any
    training_chief_hooks: tuple[Any, ...]
    training_hooks: tuple[Any, ...]
    scaffold: Any
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


# No `__slots__`: programs have always been able to hang attributes of their own on a spec.
class EstimatorSpec(_EstimatorSpecFields):
    """The model of one mode: tensors, ops and hooks, a named tuple.

    Source: `tf.estimator.EstimatorSpec`, tensorflow_estimator 1.15 to 2.15 model_fn.py.
    """

    @checked(SPEC_RULES)
    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: dict[str, Any] | None = None,
        training_chief_hooks: Iterable[Any] | None = None,
        training_hooks: Iterable[Any] | None = None,
        scaffold: Any = None,
        evaluation_hooks: Iterable[Any] | None = None,
        prediction_hooks: Iterable[Any] | None = None,
    ) -> EstimatorSpec:
        """Checks the fields against the mode and the default graph.

        Args:
            mode: A value of `ModeKeys`. TRAIN needs `loss` and `train_op`, EVAL needs `loss`,
                PREDICT needs `predictions`; what else is given is kept.
            predictions: Tensor of shape [batch, ...], or dict of name to such a tensor.
            loss: Tensor of shape [], or [1], which becomes [].
            train_op: Operation, tensor or variable.
            eval_metric_ops: Dict of name to `(value, update_op)`, where `value` may be a nested
                tuple of tensors, or to a metric object of Keras 3 or tf-keras that has been
                updated; a metric object is replaced by its pair.
            export_outputs: Dict of signature name to `ExportOutput`. In PREDICT, the default
                signature is added if there is only one, and made from `predictions` if none.
            training_chief_hooks: Hooks that only the chief runs.
            training_hooks: Hooks that every worker runs.
            scaffold: A `tf.compat.v1.train.Scaffold`; by default an empty one.
            evaluation_hooks: Hooks of `evaluate`.
            prediction_hooks: Hooks of `predict`.

        Raises:
            ValueError: A field is missing for the mode, or belongs to another graph, or the loss
                is not a scalar, or a metric object was never updated.
            TypeError: A field has the wrong type.
        """
        _warn_of_mode(mode)
        train_op = _checked_train_op(train_op, mode)
        loss = _checked_loss(loss, mode)
        predictions = _checked_predictions(predictions, mode)
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=checked_eval_metric_ops(eval_metric_ops),
            export_outputs=_checked_export_outputs(export_outputs, predictions, mode),
            training_chief_hooks=_checked_hooks(training_chief_hooks, "training_chief_hooks"),
            training_hooks=_checked_hooks(training_hooks, "training_hooks"),
            scaffold=_checked_scaffold(scaffold),
            evaluation_hooks=_checked_hooks(evaluation_hooks, "evaluation_hooks"),
            prediction_hooks=_checked_hooks(prediction_hooks, "prediction_hooks"),
        )

    @checked(SPEC_RULES)
    def _replace(self, **changes: Any) -> EstimatorSpec:
        """A new spec with some fields changed; checked again, unlike a plain named tuple.

        Raises:
            ValueError: `changes` has another mode or an unknown field, or a check fails.
        """
        if changes.get("mode", self.mode) != self.mode:
            raise ValueError(
                f"mode of EstimatorSpec cannot be changed: it is {self.mode!r}, not "
                f"{changes['mode']!r}. Make a new EstimatorSpec instead."
            )
        unknown = sorted(changes.keys() - set(self._fields))
        if unknown:
            raise ValueError(f"EstimatorSpec has no fields {unknown}; it has {self._fields}.")
        return EstimatorSpec(**{**self._asdict(), **changes})


class _TPUEstimatorSpecFields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metrics: Any
    export_outputs: Any
    scaffold_fn: Any
    host_call: Any
    training_hooks: tuple[Any, ...]
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


# No `__slots__`, as above.
class TPUEstimatorSpec(_TPUEstimatorSpecFields):
    """The model of one mode as one core sees it, with what to do on the host; a named tuple.

    Source: `tf.compat.v1.estimator.tpu.TPUEstimatorSpec`, tensorflow_estimator 2.15
    tpu_estimator.py.
    """

    @checked(SPEC_RULES)
    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metrics: Any = None,
        export_outputs: dict[str, Any] | None = None,
        scaffold_fn: Callable[[], Any] | None = None,
        host_call: Any = None,
        training_hooks: Iterable[Any] | None = None,
        evaluation_hooks: Iterable[Any] | None = None,
        prediction_hooks: Iterable[Any] | None = None,
    ) -> TPUEstimatorSpec:
        """Checks the fields; those that `EstimatorSpec` has too mean the same there.

        Args:
            mode: A value of `ModeKeys`.
            predictions: Tensor of shape [per-core batch, ...], or dict of name to such a tensor.
            loss: Tensor of shape [] or [1]: the loss of this core.
            train_op: Operation, tensor or variable.
            eval_metrics: `(metric_fn, tensors)`. `tensors` is a list, given to `metric_fn` by
                position, or a dict, given by keyword; each tensor has a leading batch axis, over
                which the cores are concatenated. `metric_fn` runs on the host and returns what
                `EstimatorSpec` takes as `eval_metric_ops`.
            export_outputs: Dict of signature name to `ExportOutput`.
            scaffold_fn: Runs on the host, takes nothing, returns a `Scaffold`.
            host_call: `(host_fn, tensors)` as in `eval_metrics`; `host_fn` runs on the host for
                every step and returns tensors or ops.
            training_hooks: Hooks of `train`.
            evaluation_hooks: Hooks of `evaluate`.
            prediction_hooks: Hooks of `predict`.

        Raises:
            ValueError: As for `EstimatorSpec`, or `eval_metrics` or `host_call` is not such a pair.
            TypeError: As for `EstimatorSpec`, or the function of a pair cannot be called, or does
                not take the names of its dict of tensors.
            RuntimeError: The function of a pair takes another number of tensors.
        """
        check_host_calls(eval_metrics=eval_metrics, host_call=host_call)
        _warn_of_mode(mode)
        train_op = _checked_train_op(train_op, mode)
        loss = _checked_loss(loss, mode)
        predictions = _checked_predictions(predictions, mode)
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metrics=eval_metrics,
            export_outputs=_checked_export_outputs(export_outputs, predictions, mode),
            scaffold_fn=scaffold_fn,
            host_call=host_call,
            training_hooks=_checked_hooks(training_hooks, "training_hooks"),
            evaluation_hooks=_checked_hooks(evaluation_hooks, "evaluation_hooks"),
            prediction_hooks=_checked_hooks(prediction_hooks, "prediction_hooks"),
        )

    def as_estimator_spec(self) -> EstimatorSpec:
        """Returns the same model for one device that is its own host (`use_tpu=False`).

        Calls `metric_fn`, `host_fn` and `scaffold_fn` in the default graph, in this order and in
        every mode, as the original does: the names of the ops that they add depend on it.

        Raises:
            ValueError, TypeError, RuntimeError: As `EstimatorSpec`, or from the functions called.
        """
        # `_replace` of a named tuple does not check, so these may have come in unchecked.
        check_host_calls(eval_metrics=self.eval_metrics, host_call=self.host_call)
        metric_ops = None if self.eval_metrics is None else call_on_host(self.eval_metrics)
        hooks: tuple[Any, ...] = ()
        if self.host_call is not None:
            hooks = (HostCallHook(call_on_host(self.host_call)),)
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=metric_ops,
            export_outputs=self.export_outputs,
            training_hooks=(*self.training_hooks, *hooks),
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            evaluation_hooks=(*self.evaluation_hooks, *hooks),
            prediction_hooks=(*self.prediction_hooks, *hooks),
        )


def call_on_host(pair: tuple[Callable[..., Any], Any]) -> Any:
    """Calls the function of a `(function, tensors)` pair with its list or dict of tensors."""
    function, tensors = pair
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


def check_host_calls(**pairs: Any) -> None:
    """Checks `(function, tensors)` pairs, by name; raises as TPUEstimatorSpec."""
    for name, pair in pairs.items():
        if pair is not None:
            _check_host_call(name, pair)


def _check_host_call(name: str, pair: Any) -> None:
    if not isinstance(pair, (tuple, list)):
        raise ValueError(f"{name} should be tuple or list (function, tensors), given: {pair}")
    if len(pair) != 2:
        raise ValueError(f"{name} should have two elements. Given {len(pair)}: {pair}")
    function, tensors = pair
    if not callable(function):
        raise TypeError(f"{name}[0] should be callable. Given: {function}")
    if not isinstance(tensors, (tuple, list, dict)):
        raise ValueError(f"{name}[1] should be tuple or list, or dict. Given: {tensors}")
    try:
        # A wrapper that takes *args passes them on in its own way: judge it, not what it wraps.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # Callables written in C do not tell what they take.
    if isinstance(tensors, dict):
        _check_takes_names(name, signature, tensors)
    else:
        _check_takes_count(name, signature, len(tensors))


def _check_takes_names(name: str, signature: inspect.Signature, tensors: dict[str, Any]) -> None:
    try:
        signature.bind(**tensors)
    except TypeError as error:
        raise TypeError(
            f"In TPUEstimatorSpec.{name}, the names of the tensors {sorted(tensors)} do not match "
            f"method args of the function, which takes {signature}: {error}."
        ) from None


def _check_takes_count(name: str, signature: inspect.Signature, count: int) -> None:
    """Raises unless a function takes `count` arguments, those with a default included."""
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes = sum(kind in by_position for kind in kinds)
    if count != takes:
        raise RuntimeError(
            f"In TPUEstimatorSpec.{name}, length of tensors {count} does not match method args of "
            f"the function, which takes {takes}: {signature}."
        )


def _warn_of_mode(mode: Any) -> None:
    """Warns of an unknown mode: the original took it, and checked little."""
    if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
        instead = "Pass the mode that model_fn got: ModeKeys.TRAIN, EVAL or PREDICT."
        tf.compat.v1.logging.warn(str(wrong_argument("mode is none of ModeKeys", mode, instead)))


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError(f"Missing loss. EstimatorSpec needs one in mode {mode!r}.")
        return None
    _check_is_tensor(loss, "loss")
    _check_graph(loss, "loss")
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar, given: {loss}. Reduce it, say by tf.reduce_mean.")
    if not loss.shape.is_compatible_with([]):
        return tf.reshape(loss, [])
    return loss


def _checked_train_op(train_op: Any, mode: str) -> Any:
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError(f"Missing train_op. EstimatorSpec needs one in mode {mode!r}.")
        return None
    if not isinstance(train_op, (tf.Operation, tf.Tensor, tf.Variable)):
        raise TypeError(f"train_op must be Operation or Tensor, given: {train_op}")
    # `assign_add` of a resource variable gives an unread variable, whose op is the assignment.
    if isinstance(train_op, tf.Variable):
        train_op = train_op.op
    _check_graph(train_op, "train_op")
    return train_op


def _checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError(f"Missing predictions. EstimatorSpec needs them in mode {mode!r}.")
        return {}
    if not isinstance(predictions, dict):
        _check_is_tensor(predictions, "predictions")
        _check_graph(predictions, "prediction values")
        return predictions
    for key, value in predictions.items():
        _check_is_tensor(value, f"predictions[{key}]")
        _check_graph(value, "prediction values", key)
    return dict(predictions)


def _checked_export_outputs(export_outputs: Any, predictions: Any, mode: str) -> Any:
    """Checks export_outputs in PREDICT; the other modes do not export, and let anything pass."""
    if mode != ModeKeys.PREDICT:
        return export_outputs
    return export.get_export_outputs(export_outputs, predictions)


def _checked_hooks(hooks: Iterable[Any] | None, name: str) -> tuple[Any, ...]:
    hooks = tuple(hooks or ())
    for hook in hooks:
        if not isinstance(hook, tf.compat.v1.train.SessionRunHook):
            raise TypeError(
                f"All hooks must be SessionRunHook instances; in {name} each must be a "
                f"SessionRunHook, given: {hook}"
            )
    return hooks


def _checked_scaffold(scaffold: Any) -> Any:
    if scaffold is None:
        return tf.compat.v1.train.Scaffold()
    if not isinstance(scaffold, tf.compat.v1.train.Scaffold):
        raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")
    return scaffold


def checked_eval_metric_ops(metrics: Mapping[str, Any] | None) -> dict[str, tuple[Any, Any]]:
    """Name -> (value, update_op), metric objects replaced by their pairs.

    Raises:
        ValueError: A metric belongs to another graph, or is an object that was never updated.
        TypeError: It is no dict of pairs and metric objects.
    """
    if metrics is None:
        return {}
    if not isinstance(metrics, dict):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
    return {
        key: _metric_object_ops(key, value)
        if _is_metric_object(value)
        else _checked_metric_pair(key, value)
        for key, value in metrics.items()
    }


def _checked_metric_pair(key: str, pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(
            "Values of eval_metric_ops must be (metric_value, update_op) tuples, given: "
            f"{pair} for key: {key}"
        )
    for part in tf.nest.flatten(pair):
        _check_graph(part, "eval_metric_ops", key)
    return pair


def _is_metric_object(value: Any) -> bool:
    """True for a value with the methods of a metric.

    Keras 3 and tf-keras have no class in common, and need not be installed.
    """
    return all(callable(getattr(value, name, None)) for name in ("update_state", "result"))


def _metric_object_ops(key: str, metric: Any) -> tuple[Any, Any]:
    """The `(value, update_op)` pair of a metric object that was updated in the default graph.

    Its variables become local ones, as those of `tf.compat.v1.metrics` are: reset before each
    evaluation and absent from checkpoints.
    """
    # Keras 3 wraps each tf.Variable, tf-keras does not.
    variables = [v if isinstance(v, tf.Variable) else v.value for v in metric.variables]
    lists_updates = hasattr(metric, "updates")  # tf-keras
    updates = metric.updates if lists_updates else _writes(key, variables)
    if not updates:
        raise ValueError(
            f'Please call update_state(...) on the "{metric.name}" metric before giving it to '
            "EstimatorSpec in eval_metric_ops."
        )
    for update in updates:
        _check_graph(update, "eval_metric_ops", key)
    value = metric.result()
    _check_graph(value, "eval_metric_ops", key)
    _make_local(variables)
    # tf-keras makes one op of each call of update_state, and Estimator ran the first of them.
    return value, updates[0] if lists_updates else tf.group(*updates)


def _writes(key: str, variables: list[Any]) -> list[Any]:
    """Ops that change one of `variables`, its initializer apart: Keras 3 does not list them."""
    writes = []
    for variable in variables:
        _check_graph(variable.handle, "eval_metric_ops", key)
        for op in variable.handle.consumers():
            changes = "Assign" in op.type or "Scatter" in op.type or op.type in _FUNCTION_OPS
            if changes and op is not variable.initializer:
                writes.append(op)
    return list(dict.fromkeys(writes))


def _make_local(variables: list[Any]) -> None:
    keys = tf.compat.v1.GraphKeys
    ours = {id(variable) for variable in variables}
    # Keras 3 does not know collections: in a graph, its variables land among the model's.
    global_variables = tf.compat.v1.get_collection_ref(keys.GLOBAL_VARIABLES)
    global_variables[:] = [v for v in global_variables if id(v) not in ours]
    for collection in (keys.LOCAL_VARIABLES, keys.METRIC_VARIABLES):
        present = {id(v) for v in tf.compat.v1.get_collection(collection)}
        for variable in variables:
            if id(variable) not in present:
                tf.compat.v1.add_to_collection(collection, variable)


def _check_is_tensor(value: Any, name: str) -> None:
    if not isinstance(value, (tf.Tensor, tf.Variable)):
        raise TypeError(f"{name} must be Tensor, given: {value}")


def _check_graph(value: Any, what: str, key: str | None = None) -> None:
    """Catches what `model_fn` kept from an earlier call or made outside of its graph."""
    if tf.executing_eagerly():
        return
    # Eager tensors have no graph at all, and no name either.
    if getattr(value, "graph", None) is not tf.compat.v1.get_default_graph():
        name = getattr(value, "name", repr(value))
        label = name if key is None else f"{key}: {name}"
        raise ValueError(
            f'{what} with "{label}" must be from the default graph. It was made outside of this '
            "call of model_fn, or kept from an earlier one; build it inside model_fn"
            f"{_NAMES.get(what, '')}."
        )
