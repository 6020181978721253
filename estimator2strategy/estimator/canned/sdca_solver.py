"""Stochastic dual coordinate ascent: an exact solver of regularized linear models.

It keeps four numbers of each example, by the example's id, in a table that checkpoints save, and
the weights before L1 regularization beside the weights of the model.

Source: tensorflow_estimator 2.15 canned/linear_optimizer/python/utils/sdca_ops.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

tf1 = tf.compat.v1


class SparseFeatures(NamedTuple):
    """A categorical feature of a batch; each id is there once in an example.

    Attributes:
        examples: int64 [n], the places in the batch, in order.
        ids: int64 [n].
        values: float32 [n].
    """

    examples: tf.Tensor
    ids: tf.Tensor
    values: tf.Tensor


@dataclasses.dataclass(frozen=True)
class Examples:
    """A batch.

    Attributes:
        sparse: Categorical features, each with the variable of its weights, or a list of parts.
        dense: Others, float32 [batch, size], each with that of its weights.
        labels: float32 [batch].
        weights: float32 [batch].
        ids: string [batch], of each example another one.
    """

    sparse: Sequence[tuple[SparseFeatures, Any]]
    dense: Sequence[tuple[tf.Tensor, Any]]
    labels: tf.Tensor
    weights: tf.Tensor
    ids: tf.Tensor


@dataclasses.dataclass(frozen=True)
class SdcaProblem:
    """The loss and its regularization.

    Attributes:
        loss_type: "logistic_loss", "squared_loss" or "hinge_loss".
        l1, l2: The strengths of regularization.
        num_loss_partitions: Number of processes that train.
        adaptive: True to look at examples more often whose loss is larger.
    """

    loss_type: str
    l1: float
    l2: float
    num_loss_partitions: int = 1
    adaptive: bool = False


class SolvedWeights(NamedTuple):
    """The weights of a feature, in one variable or cut up along the first axis."""

    parts: list[Any]
    unshrunk: list[Any]

    @classmethod
    def of_variable(cls, variable: Any, suffix: str) -> SolvedWeights:
        """Those in `variable`, with new ones before regularization, which start at 0.

        Args:
            variable: One, or a list of parts.
            suffix: Of the names of the new ones.
        """
        is_whole = isinstance(variable, tf.Variable)
        parts = [variable] if is_whole else list(variable)
        return cls(parts, [_zeros(part, suffix) for part in parts])

    def before_shrinking(self) -> tf.Tensor:
        """All of them, before regularization."""
        return tf.concat(self.unshrunk, 0)

    def add(self, delta: tf.Tensor) -> list[tf.Operation]:
        """Adds to all of them, before regularization."""
        sizes = [part.shape.as_list()[0] for part in self.unshrunk]
        changes = tf.split(delta, sizes, 0)
        return [
            tf1.assign_add(part, tf.reshape(change, part.shape))
            for part, change in zip(self.unshrunk, changes, strict=True)
        ]

    def add_at(self, ids: tf.Tensor, delta: tf.Tensor) -> list[tf.Operation]:
        """Adds to those of some ids, before regularization."""
        if len(self.unshrunk) == 1:
            (whole,) = self.unshrunk
            return [tf1.scatter_add(whole, ids, delta)]
        shapes = [part.shape.as_list() for part in self.unshrunk]
        shape = [sum(size for size, *_ in shapes), *shapes[0][1:]]
        return self.add(tf.scatter_nd(ids[:, tf.newaxis], delta, tf.cast(shape, ids.dtype)))


def _zeros(variable: Any, suffix: str) -> tf.Variable:
    return tf1.Variable(tf.zeros(variable.shape, tf.float32), name=variable.op.name + suffix)


class Solver:
    """Trains the weights of a linear model on the batches of its examples.

    Args:
        examples: A batch.
        problem: The loss that is minimized.
        suffix: Of the names of the weights before regularization.
    """

    def __init__(
        self,
        examples: Examples,
        problem: SdcaProblem,
        suffix: str = "_unshrunk",
    ):
        self._examples = examples
        self._problem = problem
        self._sparse = [
            SolvedWeights.of_variable(variable, suffix) for _, variable in examples.sparse
        ]
        self._dense = [
            SolvedWeights.of_variable(variable, suffix) for _, variable in examples.dense
        ]
        with tf1.name_scope("ShardedMutableHashTable"):
            # The hash of an id is never 0 or 1.
            self._table = tf.lookup.experimental.DenseHashTable(
                tf.int64,
                tf.float32,
                default_value=[0.0] * 4,
                empty_key=[0, 0],
                deleted_key=[1, 1],
                name="ShardedMutableHashTable-1-of-1",
            )
        tf1.summary.scalar("approximate_duality_gap", self._duality_gap())
        tf1.summary.scalar("examples_seen", self._table.size())

    def minimize(self, global_step: tf.Variable) -> tf.Operation:
        """The op that trains on the batch, and counts a step."""
        with tf1.name_scope("sdca/minimize"):
            updates = self._updates()
            with tf.control_dependencies(updates):
                count = tf1.assign_add(global_step, 1).op
        with tf.control_dependencies([count]):
            return self._shrunk()

    def _updates(self) -> list[tf.Operation]:
        """Changes the table, and the weights before regularization."""
        examples, problem = self._examples, self._problem
        hashes = tf.raw_ops.SdcaFprint(input=examples.ids)
        features = [feature for feature, _ in examples.sparse]
        used = [tf.unique(feature.ids)[0] for feature in features]
        solved = tf.raw_ops.SdcaOptimizerV2(
            sparse_example_indices=[feature.examples for feature in features],
            sparse_feature_indices=[feature.ids for feature in features],
            sparse_feature_values=[feature.values for feature in features],
            dense_features=[feature for feature, _ in examples.dense],
            example_weights=examples.weights,
            example_labels=examples.labels,
            sparse_indices=used,
            sparse_weights=[
                tf.gather(weights.before_shrinking(), ids)
                for weights, ids in zip(self._sparse, used, strict=True)
            ],
            dense_weights=[weights.before_shrinking() for weights in self._dense],
            example_state_data=self._table.lookup(hashes),
            loss_type=problem.loss_type,
            l1=problem.l1,
            l2=problem.l2,
            num_loss_partitions=problem.num_loss_partitions,
            num_inner_iterations=1,
            adaptive=problem.adaptive,
        )
        with tf.control_dependencies([solved.out_example_state_data]):
            updates = [self._table.insert(hashes, solved.out_example_state_data)]
            deltas = solved.out_delta_sparse_weights
            for weights, ids, delta in zip(self._sparse, used, deltas, strict=True):
                updates += weights.add_at(ids, delta)
            for weights, delta in zip(self._dense, solved.out_delta_dense_weights, strict=True):
                updates += weights.add(delta)
        return updates

    def _shrunk(self) -> tf.Operation:
        """Sets the weights of the model: those before regularization, nearer to 0."""
        shrinkage = self._problem.l1 / self._problem.l2
        updates = []
        for weights in (*self._sparse, *self._dense):
            for part, unshrunk in zip(weights.parts, weights.unshrunk, strict=True):
                value = unshrunk.read_value()
                if shrinkage > 0:
                    value = tf.sign(value) * tf.maximum(0.0, tf.abs(value) - shrinkage)
                updates.append(tf1.assign(part, value))
        return tf.group(*updates)

    def _duality_gap(self) -> tf.Tensor:
        """How far the model is from the best one, about; NaN before the first example."""
        with tf1.name_scope("sdca/approximate_duality_gap"):
            _, states = self._table.export()
            totals = tf.reduce_sum(tf.cast(states, tf.float64), 0)
            parts = [part for w in (*self._sparse, *self._dense) for part in w.parts]
            values = [tf.cast(part.read_value(), tf.float64) for part in parts]
            l1 = self._problem.l1 * tf.add_n([tf.reduce_sum(tf.abs(v)) for v in values])
            l2 = self._problem.l2 * tf.add_n([tf.reduce_sum(tf.square(v)) for v in values])
            return (totals[1] + totals[2] + l1 + l2) / totals[3]


def sparse_features(found: tf.SparseTensor, weights: tf.SparseTensor | None) -> SparseFeatures:
    """A categorical feature with each id once in an example, its weights added up.

    Ids below 0, of words that no vocabulary has, are left out.

    Args:
        found: Ids, whole numbers [batch, ...].
        weights: float32, of the same indices; None for ones.
    """
    examples, ids = found.indices[:, 0], tf.cast(found.values, tf.int64)
    values = tf.ones_like(ids, tf.float32) if weights is None else weights.values
    known = ids >= 0
    examples, ids, values = (tf.boolean_mask(t, known) for t in (examples, ids, values))
    size = tf.reduce_max(ids) + 1
    pairs, places = tf.unique(size * examples + ids)
    count = tf.size(pairs)
    of_examples = tf.math.unsorted_segment_min(examples, places, count)
    total = tf.math.unsorted_segment_sum(values, places, count)
    return SparseFeatures(of_examples, pairs - size * of_examples, total)
