"""The checks that heads make of labels, logits, weights and loss functions.

Shapes are written as the original wrote them: `[D0, D1, ... DN, logits_dimension]`, where the D are
mostly the batch size alone. A shape that the graph does not know is checked at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.user_code import argument_names

tf1 = tf.compat.v1

NO_LABELS = (
    "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that "
    "your data contains your label feature. Check that your input_fn properly parses and returns "
    "labels."
)
_REDUCTIONS = ("auto", "sum", "sum_over_batch_size")
_LOGITS_SHAPE = "logits shape must be [D0, D1, ... DN, logits_dimension]"


def _checked(tensor: tf.Tensor, checks: list[Any], name: str | None = None) -> tf.Tensor:
    with tf.control_dependencies([check for check in checks if check is not None]):
        return tf.identity(tensor, name)


def _rank_at_least_two(tensor: tf.Tensor, what: str, message: str) -> Any:
    if tf.executing_eagerly():
        if tensor.shape.rank < 2:
            raise ValueError(
                f"{what} must have rank at least 2.  Received rank {tensor.shape.rank}, "
                f"shape {tuple(tensor.shape)}"
            )
        return None
    return tf1.debugging.assert_rank_at_least(tensor, 2, message=message)


def _one_of(shape: tf.Tensor, expected: list[tf.Tensor], message: str, **shown: tf.Tensor) -> Any:
    """An op that fails unless `shape` is one of `expected`."""
    same = [
        tf.size(shape) == tf.size(wanted) and tf.reduce_all(shape == wanted)
        if tf.executing_eagerly()
        else tf.reduce_all(tf.equal(shape, wanted))
        for wanted in expected
    ]
    if tf.executing_eagerly():
        if not any(bool(matches) for matches in same):
            shapes = ". ".join(f"{name}: {tuple(value.numpy())}" for name, value in shown.items())
            raise ValueError(f"{message}, {shapes}.")
        return None
    data = [item for name, value in shown.items() for item in (f"{name}: ", value)]
    if len(expected) == 1:
        return tf1.debugging.assert_equal(expected[0], shape, data, message=message)
    return tf.debugging.Assert(tf.reduce_any(same), [message, *data])


def check_logits_final_dim(logits: Any, expected_logits_dimension: int | tf.Tensor) -> tf.Tensor:
    """`logits` as float32, of shape [D0, D1, ... DN, expected_logits_dimension].

    Raises:
        ValueError: The last dimension is another, or, eagerly, the rank is less than 2.
        InvalidArgumentError: While running, where this could not be seen before.
    """
    with tf1.name_scope("logits") as scope:
        logits = tf.cast(logits, tf.float32)
        checks = [_rank_at_least_two(logits, "logits", _LOGITS_SHAPE)]
        known = logits.shape.rank is not None and _size(logits.shape, -1) is not None
        if isinstance(expected_logits_dimension, int) and known:
            if _size(logits.shape, -1) != expected_logits_dimension:
                raise ValueError(
                    f"{_LOGITS_SHAPE[:-1]}={expected_logits_dimension}], got {logits.shape}."
                )
        elif not known:
            last = tf.shape(logits)[-1]
            checks.append(
                tf1.debugging.assert_equal(expected_logits_dimension, last, message=_LOGITS_SHAPE)
            )
        return _checked(logits, checks, scope)


def _size(shape: tf.TensorShape, axis: int) -> int | None:
    return shape.as_list()[axis] if shape.rank else None


def check_dense_labels_match_logits_and_reshape(
    labels: Any, logits: tf.Tensor, expected_labels_dimension: int
) -> tf.Tensor:
    """Labels of shape [D0, D1, ... DN, expected_labels_dimension].

    Those of a rank less than that of the logits get a last dimension of 1.

    Raises:
        ValueError: They are None or sparse, or their last dimension is another.
        InvalidArgumentError: While running, where this could not be seen before.
    """
    size = expected_labels_dimension
    if labels is None:
        raise ValueError(NO_LABELS)
    with tf1.name_scope("labels") as scope:
        labels = tf1.convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, tf.SparseTensor):
            raise ValueError(
                "SparseTensor labels are not supported. Labels must be a Tensor of shape [D0, D1, "
                f"..., DN, {size}], e.g. [batch_size, {size}]. Suggested Fix (1): Check the label "
                f"feature in your data. Each example must contain {size} value(s). Suggested Fix "
                "(2): In your input_fn, use tf.sparse.to_dense() to turn labels into a Tensor."
            )
        ranks = (labels.shape.rank, logits.shape.rank)
        if None not in ranks and ranks[0] == ranks[1] - 1:
            labels = tf.expand_dims(labels, -1)
        message = (
            f"labels shape must be [D0, D1, ... DN, {size}]. Suggested Fix: check your n_classes "
            "argument to the estimator and/or the shape of your label"
        )
        checks = [_rank_at_least_two(labels, "labels", message)]
        if _size(labels.shape, -1) not in (None, size):
            raise ValueError(
                f"Mismatched label shape. Expected labels dimension={size}.  Received "
                f"{_size(labels.shape, -1)}. Suggested Fix: If your classifier expects one-hot "
                "encoding label, check your n_classes argument to the estimator and/or the shape "
                "of your label. Otherwise, check the shape of your label."
            )
        shape = tf.shape(labels)
        expected = tf.concat([tf.shape(logits)[:-1], [size]], axis=0)
        checks.append(
            _one_of(shape, [expected], message, expected_labels_shape=expected, labels_shape=shape)
        )
        return _checked(labels, checks, scope)


def numeric_column(weight_column: Any) -> Any:
    """The column that weights examples, from a name or from itself.

    Raises:
        TypeError: It is neither a name nor a numeric column.
    """
    if isinstance(weight_column, str):
        return tf.feature_column.numeric_column(weight_column, shape=(1,))
    if not isinstance(weight_column, _tf_private.NumericColumn):
        raise TypeError(
            "Weight column must be either a string or NumericColumn. "
            f"Given type: {type(weight_column)}."
        )
    return weight_column


def get_weights_and_check_match_logits(
    features: Mapping[str, Any] | None,
    weight_column: Any,
    logits: tf.Tensor,
    allow_per_logit_weights: bool = False,
) -> Any:
    """Weights of shape [D0, D1, ... DN, 1], or of that of the logits if allowed; or 1.0.

    Args:
        features: The features, which have `weight_column`.
        weight_column: A name, a numeric column, or None.
        logits: float32 [D0, D1, ... DN, logits_dimension].
        allow_per_logit_weights: True if weights may have the shape of the logits.

    Raises:
        TypeError: `weight_column` is something else.
        ValueError: The weights are no numbers, or, eagerly, have another shape.
        InvalidArgumentError: While running, where the shape could not be seen before.
    """
    if weight_column is None:
        return 1.0
    column = numeric_column(weight_column)
    message = "weights shape must be [D0, D1, ... DN] or [D0, D1, ... DN, 1]"
    if allow_per_logit_weights:
        message += " or [D0, D1, ... DN, logits_dimension]"
    with tf1.name_scope("weights") as scope:
        cache = tf.__internal__.feature_column.FeatureTransformationCache(features)
        weights = column.get_dense_tensor(cache, None)
        if not (weights.dtype.is_floating or weights.dtype.is_integer):
            raise ValueError(
                f"Weight column should be castable to float. Given dtype: {weights.dtype}"
            )
        weights = tf.cast(weights, tf.float32)
        shape, logits_shape = tf.shape(weights), tf.shape(logits)
        ranks = (weights.shape.rank, logits.shape.rank)
        if None not in ranks and ranks[0] == ranks[1] - 1:
            expected = [logits_shape[:-1]]
            weights = tf.expand_dims(weights, -1)
        else:
            expected = [tf.concat([logits_shape[:-1], [1]], axis=0)]
            expected += [logits_shape] if allow_per_logit_weights else []
        check = _one_of(shape, expected, message, logits_shape=logits_shape, weights_shape=shape)
        return _checked(weights, [check], scope)


def check_label_range(labels: tf.Tensor, n_classes: int, message: str | None = None) -> tf.Tensor:
    """`labels`, of which each must be in [0, n_classes - 1].

    Raises:
        ValueError: Eagerly, if one is not.
        InvalidArgumentError: The same while a graph runs.
    """
    with tf1.name_scope("check_label_range"):
        last = tf.cast(n_classes - 1, labels.dtype)
        too_large = message or f"Labels must be <= {n_classes} - 1"
        negative = message or "Labels must be >= 0"
        if tf.executing_eagerly():
            if not tf.reduce_all(labels <= last):
                raise ValueError(too_large)
            if not tf.reduce_all(labels >= 0):
                raise ValueError(negative)
            return labels
        if not message:
            too_large = "Labels must be <= n_classes - 1"
        return _checked(
            labels,
            [
                tf1.debugging.assert_less_equal(labels, last, message=too_large),
                tf1.debugging.assert_non_negative(labels, message=negative),
            ],
        )


def validate_loss_reduction(loss_reduction: Any) -> None:
    """Raises ValueError unless it is a `tf.losses.Reduction` of TF 2, and not NONE."""
    if loss_reduction not in _REDUCTIONS:
        raise ValueError(
            f"Invalid loss_reduction: {loss_reduction}. See `tf.losses.Reduction` for valid "
            f"options: {', '.join(_REDUCTIONS)}."
        )


def validate_n_classes(n_classes: Any) -> Any:
    """`n_classes`; raises ValueError if it is an int below 3."""
    if isinstance(n_classes, int) and n_classes <= 2:
        raise ValueError(f"n_classes must be > 2: {n_classes}.")
    return n_classes


def validate_loss_fn_args(
    loss_fn: Callable[..., Any], optional: Iterable[str] = ("features", "loss_reduction")
) -> None:
    """Raises ValueError unless `loss_fn` takes labels and logits, and of others only `optional`."""
    names = argument_names(loss_fn)
    for required in ("labels", "logits"):
        if required not in names:
            raise ValueError(f"loss_fn must contain argument: {required}. Given arguments: {names}")
    unexpected = sorted(set(names) - {"labels", "logits", *optional})
    if unexpected:
        raise ValueError(f"loss_fn has unexpected args: {unexpected}")


def call_loss_fn(
    loss_fn: Callable[..., Any],
    labels: tf.Tensor,
    logits: tf.Tensor,
    features: Mapping[str, Any] | None,
    expected_loss_dim: int = 1,
) -> tf.Tensor:
    """The losses that `loss_fn` returns for labels and logits: [D0, D1, ... DN, expected_loss_dim].

    Raises:
        ValueError: Eagerly, if its shape is another.
        InvalidArgumentError: The same while a graph runs.
    """
    given = {"features": features} if "features" in argument_names(loss_fn) else {}
    with tf1.name_scope("call_loss_fn"):
        loss = loss_fn(labels=labels, logits=logits, **given)
        logits_shape, shape = tf.shape(logits), tf.shape(loss)
        expected = tf.concat([logits_shape[:-1], [expected_loss_dim]], axis=0)
        message = f"loss_fn must return Tensor of shape [D0, D1, ... DN, {expected_loss_dim}]. "
        shown = {"logits_shape": logits_shape, "loss_shape": shape}
        if tf.executing_eagerly():
            _one_of(shape, [expected], message, **shown)
            return loss
        same = tf.reduce_all(tf.equal(shape, expected))
        data = [item for name, value in shown.items() for item in (f"{name}: ", value)]
        return _checked(loss, [tf.debugging.Assert(same, [message, *data])])


def checked_thresholds(thresholds: Iterable[float] | None) -> tuple[float, ...]:
    """`thresholds`, each of which must be in (0, 1).

    Raises:
        ValueError: One is not.
    """
    thresholds = tuple(thresholds or ())
    for threshold in thresholds:
        if not 0.0 < threshold < 1.0:
            raise ValueError(
                f"thresholds not in (0, 1): {thresholds}. thresholds must be in (0, 1) range. "
                f"Given: {threshold}"
            )
    return thresholds


def checked_vocabulary(vocabulary: Any, n_classes: int | None = None) -> Any:
    """`vocabulary`, which must be a list or tuple with a name for each class, or None.

    Raises:
        ValueError: It is something else, or has another length.
    """
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, (list, tuple)):
        raise ValueError(
            f"label_vocabulary should be a list or a tuple. Given type: {type(vocabulary)}"
        )
    if n_classes is not None and len(vocabulary) != n_classes:
        raise ValueError(
            f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(vocabulary)}"
        )
    return vocabulary


def validate_update_ops(update_ops: Any) -> None:
    """Raises ValueError unless `update_ops` is a list, a tuple or None."""
    if update_ops is not None and not isinstance(update_ops, (list, tuple)):
        raise ValueError(f"update_ops should be a list or a tuple. Given type: {type(update_ops)}")


def validate_trainable_variables(trainable_variables: Any) -> None:
    """Raises ValueError unless `trainable_variables` is a list or tuple."""
    if trainable_variables is None:
        raise ValueError("trainable_variables cannot be None. Given None")
    if not isinstance(trainable_variables, (list, tuple)):
        raise ValueError(
            "trainable_variables should be a list or a tuple. "
            f"Given type: {type(trainable_variables)}"
        )
