"""Heads of sequences: a prediction for each step, of which padding does not count.

Example:

    head = SequentialHeadWrapper(BinaryClassHead(), sequence_length_mask="mask")
    features["mask"] = tf.sequence_mask(lengths)                  # bool [batch, longest]
    logits = network(features)                                    # [batch, longest, 1]
    return head.create_estimator_spec(features, mode, logits, labels, optimizer=optimizer, ...)

Source: tensorflow_estimator 2.15 head/sequential_head.py.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator.heads.base import Head
from estimator2strategy.estimator.heads.multi_head import MultiHead
from estimator2strategy.estimator.specs import EstimatorSpec, TPUEstimatorSpec

tf1 = tf.compat.v1


class SequentialHead(Head):
    """A head that knows which steps of a batch of sequences are no padding."""

    @property
    @abc.abstractmethod
    def input_sequence_mask_key(self) -> str:
        """The name of the feature that says so, bool [batch, longest]."""


class SequentialHeadWrapper(SequentialHead):
    """A head for each step of sequences, made of a head for single examples.

    Args:
        static_head: The head for single examples; no `MultiHead`.
        sequence_length_mask: Name of the feature that is False at padding, [batch, longest].
        feature_columns: The name, or names, of features of steps that the head uses: weights.

    Raises:
        TypeError: A name is no string.
        ValueError: `static_head` is a `MultiHead`; while a model is built, that a feature is
            missing or has no steps.
    """

    def __init__(
        self,
        static_head: Any,
        sequence_length_mask: str = "sequence_length_mask",
        feature_columns: str | Iterable[str] | None = None,
    ):
        if not isinstance(sequence_length_mask, str):
            raise TypeError(
                "`sequence_mask` column must be a string. Given type: "
                f"{type(sequence_length_mask)}."
            )
        if isinstance(static_head, MultiHead):
            raise ValueError("`MultiHead` is not supported with `SequentialHeadWrapper`.")
        self._static_head = static_head
        self._mask = sequence_length_mask
        self._feature_columns = _names(feature_columns)

    @property
    def name(self) -> str | None:
        return f"{self._static_head.name}_sequential" if self._static_head.name else None

    @property
    def logits_dimension(self) -> int:
        return cast(int, self._static_head.logits_dimension)

    @property
    def loss_reduction(self) -> str:
        return cast(str, self._static_head.loss_reduction)

    @property
    def input_sequence_mask_key(self) -> str:
        return self._mask

    @property
    def static_head(self) -> Any:
        """The head for single examples."""
        return self._static_head

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> tf.Tensor:
        labels, logits, features = self._flat(labels, logits, features)
        return self._static_head.loss(labels, logits, features, mode, regularization_losses)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, tf.Tensor]:
        return cast(dict[str, tf.Tensor], self._static_head.predictions(logits, keys=keys))

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        return cast(dict[str, Any], self._static_head.metrics(regularization_losses))

    def update_metrics(  # type: ignore[override]  # without mode, as in TensorFlow
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        labels, logits, features = self._flat(labels, logits, features)
        return cast(
            dict[str, Any],
            self._static_head.update_metrics(
                eval_metrics, features, logits, labels, regularization_losses
            ),
        )

    def create_estimator_spec(  # type: ignore[override]  # the rest goes to the wrapped head
        self, features: Any, mode: str, logits: Any, labels: Any = None, **rest: Any
    ) -> EstimatorSpec:
        if mode == ModeKeys.PREDICT:
            spec = self._static_head.create_estimator_spec(
                features=features, mode=mode, logits=logits
            )
            return cast(
                EstimatorSpec,
                spec._replace(predictions={**spec.predictions, self._mask: features[self._mask]}),
            )
        labels, logits, features = self._flat(labels, logits, features)
        return cast(
            EstimatorSpec,
            self._static_head.create_estimator_spec(
                features=features, mode=mode, logits=logits, labels=labels, **rest
            ),
        )

    def _create_tpu_estimator_spec(self, **arguments: Any) -> TPUEstimatorSpec:
        raise NotImplementedError("Heads of sequences were not made for TPUs")

    def _flat(
        self, labels: Any, logits: Any, features: Mapping[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
        """Labels, logits and the features that the head uses: [steps, ...], without padding."""
        if self._mask not in features:
            raise ValueError(
                f"The provided sequence_length_mask key `{self._mask}` should be included in the "
                f"features dictionary, but was not found. Found keys: {list(features)}."
            )
        mask = features[self._mask]
        if mask.shape.rank != 2:
            raise ValueError(
                f"Mask is expected to have two dimensions, got {mask.shape.rank} instead."
            )
        for name in self._feature_columns:
            if name not in features:
                raise ValueError(f"`{name}` column expected in features dictionary.")
        with tf1.name_scope("flatten"):
            return (
                _flat_steps(labels, mask),
                _flat_steps(logits, mask),
                {name: _flat_steps(features[name], mask) for name in self._feature_columns},
            )


def _names(feature_columns: Any) -> tuple[str, ...]:
    if isinstance(feature_columns, str):
        return (feature_columns,)
    if not isinstance(feature_columns or (), Iterable):
        raise TypeError(
            "`feature_columns` must be either a string or an iterable of strings got "
            f"{type(feature_columns)} instead."
        )
    names = tuple(feature_columns or ())
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Column must a string. Given type: {type(name)}.")
    return names


def _flat_steps(values: Any, mask: tf.Tensor) -> tf.Tensor:
    """[batch, longest, ...] as [steps, ...], [batch, longest] as [steps, 1].

    A SparseTensor has its steps already; of others the mask says which are none.
    """
    rank = values.shape.rank
    if rank < 2:
        raise ValueError(
            f"Input tensor expected to have at least 2 dimensions, got {rank} instead."
        )
    inner = values.shape[2:].as_list() if rank > 2 else [1]
    if isinstance(values, tf.SparseTensor):
        flat = tf.reshape(tf.sparse.reorder(values).values, [-1, *inner])
    elif isinstance(values, tf.Tensor):
        flat = tf.boolean_mask(values, mask)
        flat = flat if rank > 2 else flat[:, tf.newaxis]
    else:
        raise ValueError(f"`tensor` expected to be a `Tensor` or  `SparseTensor` got `{values}`.")
    steps = tf.math.count_nonzero(mask, dtype=tf.int32)
    message = "Tensor shape is incompatible with provided mask."
    expected = tf1.assert_equal(tf.shape(flat), [steps, *inner], message=message)
    with tf.control_dependencies([expected]):
        return tf.identity(flat)


def check_for_sequences(head: Any, return_sequences: bool) -> None:
    """Raises ValueError where a network predicts all steps, and its head does not."""
    if return_sequences and not isinstance(head, SequentialHead):
        raise ValueError(
            "Provided head must be a `_SequentialHead` object when `return_sequences` is set to "
            "True."
        )
