"""Embedding tables of a TPUEstimator on cores: dense lookups, equal on every core.

On a TPU, hardware beside the program held the tables. It looked rows up before a step and applied
gradients after it. Here model_fn is recorded on placeholders for the looked-up rows. Once it has
named the tables, their variables and lookups are added and replace the placeholders. Gradients are
summed over the batch before they are applied; without `use_gradient_accumulation` those of one core
after those of another, as the hardware did.

    features' ids ─ lookups ─▶ (placeholders) ─ model_fn ─▶ gradients ─ sum over cores ─▶ tables

Source: tensorflow_estimator 2.15 tpu/_tpu_estimator_embedding.py, and tensorflow 2.15
python/tpu/tpu_embedding.py and tpu_embedding_gradient.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.graph import STAND_INS
from estimator2strategy.engine.record import embedding_input
from estimator2strategy.engine.record.embedding_input import SLOTS, to_apply, updated

tf1 = tf.compat.v1

_MISSING = -1  # fills up the ids of an example


@dataclasses.dataclass(frozen=True)
class Embedding:
    """The tables and what looks rows up in them.

    Attributes:
        tables: Name -> TableConfig.
        features: Name -> FeatureConfig.
        parameters: The optimizer of tables that have none of their own.
        from_columns: True if feature columns name the variables.
        num_cores: The number of replicas.
        gradient_multiplier: `f(global_step)`, a factor for all gradients.
    """

    tables: Mapping[str, Any]
    features: Mapping[str, Any]
    parameters: Any
    from_columns: bool
    num_cores: int
    gradient_multiplier: Callable[[Any], Any] | None = None

    def densified(self, features: dict[str, Any], batch_size: int | None) -> dict[str, Any]:
        """The features of a batch, with ids and weights as dense [batch, most per example].

        Raises:
            ValueError: Ids are no integers, or weights are missing or dense.
        """
        features = dict(features)
        all_weights = {}  # apart: no two features may share some
        for name, feature in self.features.items():
            ids = embedding_input.checked_ids(name, features[name])
            combiner = self.tables[feature.table_id].combiner
            if feature.weight_key:
                weights = features.pop(feature.weight_key, None)
                dense = embedding_input.dense_weights(feature.weight_key, weights)
                dense.set_shape([batch_size, None])
                all_weights[feature.weight_key] = dense
            if isinstance(ids, tf.SparseTensor):
                ids = tf.sparse.to_dense(ids, _MISSING)
            elif combiner is not None:
                ids = tf.where(tf.equal(ids, 0), tf.constant(_MISSING, ids.dtype), ids)
            ids = ids if ids.shape.rank == 2 else tf.expand_dims(ids, 1)
            ids.set_shape([batch_size, None])
            features[name] = tf.cast(ids, tf.int64)
        return {**features, **all_weights}

    @property
    def names(self) -> frozenset[str]:
        """The features that `densified` makes, whose second axis has no fixed size."""
        weights = (feature.weight_key for feature in self.features.values())
        return frozenset([*self.features, *filter(None, weights)])

    def call(self, call: Callable[[Any], Any], features: Any, trains: bool) -> Any:
        """Calls model_fn with what is looked up in place of ids; returns what it returns.

        In training `spec.train_op` also updates the tables.

        Args:
            call: Calls it with features.
            features: With the ids, as `densified` left them.
        """
        features = dict(features)
        ids = {name: features.pop(name) for name in self.features}
        weights = {
            name: features.pop(feature.weight_key) if feature.weight_key else None
            for name, feature in self.features.items()
        }
        root = tf1.get_variable_scope()
        looked_up = {name: self._placeholder(name, ids[name]) for name in self.features}
        caught: dict[str, list[tf.Tensor]] = {name: [] for name in self.features}
        for name, activation in looked_up.items():
            feature = self.features[name]
            if trains:
                activation = _catching(activation, self._dummy(feature.table_id), caught[name])
            features[name] = activation
            if feature.max_sequence_length:
                features[name + _tf_private.SEQUENCE_LENGTH_SUFFIX] = _lengths(
                    ids[name], feature.max_sequence_length
                )
        spec = call(features)
        with tf1.variable_scope(root, auxiliary_name_scope=False):
            return self._completed(spec, ids, weights, looked_up, caught, trains)

    def _completed(
        self,
        spec: Any,
        ids: Mapping[str, Any],
        weights: Mapping[str, Any],
        looked_up: Mapping[str, tf.Tensor],
        caught: Mapping[str, list[tf.Tensor]],
        trains: bool,
    ) -> Any:
        names = self._variable_names()
        updates = []
        for table, config in self.tables.items():
            variable = _variable(names[table], config, config.initializer)
            lookups = []
            for name in (n for n, feature in self.features.items() if feature.table_id == table):
                lookup = _Lookup(ids[name], weights[name], config, self.features[name])
                _stand_in(looked_up[name], lookup.rows(variable))
                lookups.append((lookup, caught[name]))
            if trains:
                updates.append(self._update(table, names[table], variable, lookups))
        if not trains:
            return spec
        with tf.control_dependencies([spec.train_op, *updates]):
            return spec._replace(train_op=tf.no_op(name="train_with_embeddings"))

    def _update(self, table: str, name: str, variable: Any, lookups: Sequence[Any]) -> tf.Operation:
        """Applies all replicas' gradients to the table, alike on each replica."""
        config = self.tables[table]
        parameters = config.optimization_parameters or self.parameters
        shape = [config.vocabulary_size, config.dimension]
        gradient, touched = tf.zeros(shape), tf.zeros(shape[:1])
        for lookup, upstream in lookups:
            touched += lookup.touched()
            if upstream:
                gradient += lookup.gradient(tf.add_n(upstream))
        if self.gradient_multiplier:
            step = tf1.train.get_global_step()
            gradient *= tf.convert_to_tensor(self.gradient_multiplier(step), tf.float32)
        rate = parameters.learning_rate if config.learning_rate is None else config.learning_rate
        if config.learning_rate_fn:
            rate = tf.cast(config.learning_rate_fn(tf1.train.get_global_step()), tf.float32)
        slots = {
            slot: _variable(f"{name}/{suffix}", config, tf1.constant_initializer(start(parameters)))
            for slot, (suffix, start) in SLOTS[type(parameters).__name__].items()
        }
        targets = {"table": variable, **slots}
        values = {key: target.read_value() for key, target in targets.items()}
        for part in to_apply(parameters, gradient, touched, self.num_cores):
            values = updated(parameters, rate, values.pop("table"), *part, values)
        with tf.control_dependencies(list(values.values())):
            return tf.group(*(targets[key].assign(value) for key, value in values.items()))

    def _variable_names(self) -> dict[str, str]:
        """Table -> name of its variable: where a column of it was used in model_fn.

        Raises:
            RuntimeError: model_fn used none of the columns.
        """
        if not self.from_columns:
            return {table: table for table in self.tables}
        collection = tf1.get_collection(_tf_private.EMBEDDING_SCOPES)
        if not collection:
            raise RuntimeError(
                "Embedding feature column did not capture any thing. Make sure the feature columns "
                "passed to TPUEstimator constructor is properly used in model_fn."
            )
        used = collection[0]
        return {
            table: "/".join(filter(None, used[table.removeprefix("tbl_")])) for table in self.tables
        }

    def _placeholder(self, name: str, ids: tf.Tensor) -> tf.Tensor:
        feature = self.features[name]
        dimension = self.tables[feature.table_id].dimension
        length = [feature.max_sequence_length] if feature.max_sequence_length else []
        shape = [ids.shape.as_list()[0], *length, dimension]
        return tf1.placeholder(tf.float32, shape, name=f"embedding/{name}")

    @staticmethod
    def _dummy(table: str) -> tf.Variable:
        """A variable that model_fn's optimizer differentiates by, so that gradients come by here.

        The slots that the optimizer gives it are in checkpoints, as they were; it is not.
        """
        with tf1.variable_scope("", reuse=tf1.AUTO_REUSE):
            return tf1.get_variable(
                f"tpu_embedding_dummy_table_variable_{table}",
                [1],
                initializer=tf1.zeros_initializer(),
                collections=[tf1.GraphKeys.LOCAL_VARIABLES],
            )


def _lengths(ids: tf.Tensor, longest: int) -> tf.Tensor:
    lengths = tf.reduce_sum(tf.cast(ids >= 0, tf.int64), 1)
    return tf.minimum(lengths, longest)


def _variable(name: str, config: Any, initializer: Any) -> tf.Variable:
    """A variable of the table's shape, in one part: the original's had one for each host."""
    (part,) = tf1.get_variable(
        name,
        [config.vocabulary_size, config.dimension],
        tf.float32,
        initializer,
        partitioner=tf1.fixed_size_partitioner(1),
        collections=[tf1.GraphKeys.GLOBAL_VARIABLES],
        trainable=False,
    )
    return part


def _catching(activation: tf.Tensor, dummy: tf.Variable, caught: list[tf.Tensor]) -> tf.Tensor:
    """`activation`; what flows back to it goes into `caught`, on its way to `dummy`."""

    @tf.custom_gradient
    def catching(
        dummy_value: tf.Tensor,
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            caught.append(upstream)
            return tf.zeros_like(dummy_value)

        return tf.identity(activation), gradient

    return catching(dummy.read_value())


def _stand_in(placeholder: tf.Tensor, value: tf.Tensor) -> None:
    tf1.add_to_collection(STAND_INS, f"{placeholder.op.name} {value.name}")


class _Lookup:
    """Rows of a table by a feature's ids, each with the factor that the combiner gives it."""

    def __init__(self, ids: tf.Tensor, weights: tf.Tensor | None, table: Any, feature: Any):
        self._sequence = feature.max_sequence_length > 0
        self._vocabulary_size = table.vocabulary_size
        if self._sequence:
            longest = feature.max_sequence_length
            ids = tf.pad(ids[:, :longest], [[0, 0], [0, longest]], constant_values=_MISSING)
            ids = ids[:, :longest]
        self._ids = ids
        present = tf.cast(ids >= 0, tf.float32)
        factors = present if weights is None else present * weights
        if table.combiner == "mean" and not self._sequence:
            factors = tf.math.divide_no_nan(factors, tf.reduce_sum(factors, 1, keepdims=True))
        elif table.combiner == "sqrtn" and not self._sequence:
            squares = tf.reduce_sum(tf.square(factors), 1, keepdims=True)
            factors = tf.math.divide_no_nan(factors, tf.sqrt(squares))
        self._factors = factors[..., tf.newaxis]

    def rows(self, table: tf.Variable) -> tf.Tensor:
        rows = tf.gather(table.read_value(), tf.maximum(self._ids, 0)) * self._factors
        return rows if self._sequence else tf.reduce_sum(rows, 1)

    def gradient(self, upstream: tf.Tensor) -> tf.Tensor:
        """The gradient of the table, [vocabulary, dimension], from the gradient of `rows`."""
        if not self._sequence:
            upstream = upstream[:, tf.newaxis, :]
        return self._by_row(upstream * self._factors)

    def touched(self) -> tf.Tensor:
        """The number of lookups of each row."""
        return self._by_row(tf.cast(self._ids >= 0, tf.float32))

    def _by_row(self, values: tf.Tensor) -> tf.Tensor:
        # Negative ids are left out.
        return tf.math.unsorted_segment_sum(values, self._ids, self._vocabulary_size)
