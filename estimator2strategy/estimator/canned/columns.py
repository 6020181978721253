"""The inputs of canned networks: feature columns as one dense tensor, or as weighted sums."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.wrong_argument import wrong_argument

tf1 = tf.compat.v1
_api = tf.__internal__.feature_column

_V1_COLUMNS = (
    "Received a feature column from TensorFlow v1, but this is a TensorFlow v2 Estimator. Please "
    "either use v2 feature columns (accessible via tf.feature_column.* in TF 2.x) with this "
    "Estimator, or switch to a v1 Estimator for use with v1 feature columns (accessible via "
    "tf.compat.v1.estimator.* and tf.compat.v1.feature_column.*, respectively."
)


def check_features(features: Any) -> None:
    """Raises ValueError unless an input_fn returned a dict of features."""
    if not isinstance(features, dict):
        raise wrong_argument(
            f"features should be a dictionary of `Tensor`s. Given type: {type(features)}",
            features,
            "Return from input_fn ({name: tensor}, labels), with the names of the feature columns.",
        )


@contextlib.contextmanager
def _naming_the_columns() -> Iterator[None]:
    """Gives the error for a feature that input_fn does not return the form of a wrong argument."""
    try:
        yield
    except ValueError as error:
        if "is not in features dictionary" not in str(error):
            raise
        raise wrong_argument(
            "feature_columns name a feature that input_fn does not return",
            str(error),
            "Return it from input_fn, by that name, or leave its column out.",
        ) from error


def check_v2(columns: Sequence[Any]) -> None:
    """Raises ValueError for a column of TF 1's first kind."""
    if not _tf_private.is_feature_column_v2(columns):
        raise ValueError(_V1_COLUMNS)


class _State(_api.StateManager):
    """Holds the variables of columns: `get_variable`'s, in the variable scope of the moment."""

    def __init__(self) -> None:
        super().__init__(None, trainable=True)
        self.variables: dict[tuple[Any, str], tf.Variable] = {}

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        variable = tf1.get_variable(
            name, shape, dtype, initializer, trainable=trainable, use_resource=use_resource
        )
        self.variables[feature_column, name] = variable
        return variable

    def get_variable(self, feature_column: Any, name: str) -> Any:
        if (feature_column, name) not in self.variables:
            raise ValueError("Variable does not exist.")
        return self.variables[feature_column, name]


def _sorted(columns: Sequence[Any], types: tuple[type, ...], expected: str) -> list[Any]:
    normalized = _tf_private.normalize_feature_columns(columns)
    for column in normalized:
        if not isinstance(column, types):
            raise ValueError(f"Items of feature_columns must be {expected} Given: {column}")
    return cast(list[Any], normalized)


def _named(columns: Sequence[Any]) -> Iterator[Any]:
    """Each column, in a variable scope of its name."""
    for column in columns:
        with tf1.variable_scope(_tf_private.variable_scope_of_column(column.name)):
            yield column


@_naming_the_columns()
def input_layer(
    features: Mapping[str, Any], columns: Sequence[Any], scope: str, training: bool
) -> tf.Tensor:
    """Dense columns side by side.

    Args:
        features: Feature name -> tensor.
        columns: Dense columns; those of TF 1's first kind go through its `input_layer`.
        scope: Variable scope of what columns of today's kind create.
        training: For columns that behave otherwise then.

    Returns:
        float32 [batch, sum of the columns' sizes], ordered by the columns' names.

    Raises:
        ValueError: A column is not dense, or there twice; batch sizes differ.
    """
    if not _tf_private.is_feature_column_v2(columns):
        return tf1.feature_column.input_layer(features, columns)
    expected = (
        f"a {_api.DenseColumn}. You can wrap a categorical column with an embedding_column or "
        "indicator_column."
    )
    columns = _sorted(columns, (_api.DenseColumn,), expected)
    state = _State()
    with tf1.variable_scope(scope):
        for column in _named(columns):
            column.create_state(state)
    cache = _api.FeatureTransformationCache(features)
    tensors = []
    for column in columns:
        with tf1.name_scope(_tf_private.variable_scope_of_column(column.name)):
            tensor = _dense_tensor(column, cache, state, training)
            size = column.variable_shape.num_elements()
            tensors.append(tf.reshape(tensor, [tf.shape(tensor)[0], size]))
    _tf_private.check_batch_sizes(tensors, columns)
    return tf.concat(tensors, -1)


def _dense_tensor(column: Any, cache: Any, state: _State, training: bool) -> tf.Tensor:
    try:
        return column.get_dense_tensor(cache, state, training=training)
    except TypeError:  # none of TensorFlow's own takes it
        return column.get_dense_tensor(cache, state)


def with_context(sequence: tf.Tensor, context: tf.Tensor) -> tf.Tensor:
    """The inputs of all steps, each with the context of its sequence behind it.

    Args:
        sequence: float32 [batch, longest, width].
        context: float32 [batch, size].

    Returns:
        float32 [batch, longest, width + size].

    Raises:
        ValueError: One of them has other dimensions.
        TypeError: One of them has another dtype.
    """
    for name, tensor, rank in (("sequence_input", sequence, 3), ("context_input", context, 2)):
        tf1.assert_rank(tensor, rank, message=f"{name} must have rank {rank}")
        message = f"{name} must have dtype float32; got {tensor.dtype}."
        tf1.assert_type(tensor, tf.float32, message=message)
    longest = tf.shape(sequence)[1]
    return tf.concat([sequence, tf.tile(context[:, tf.newaxis], [1, longest, 1])], 2)


class LinearSums(NamedTuple):
    """A linear model: float32 [batch, units], and its variables.

    Attributes:
        by_column: Of columns of today's kind: each, and its variable, in the order of their names.
    """

    logits: tf.Tensor
    bias: Any
    weights: list[Any]
    by_column: list[tuple[Any, Any]]

    @property
    def variables(self) -> list[Any]:
        """All there are."""
        return [*self.weights, self.bias]


@_naming_the_columns()
def linear_model(
    features: Mapping[str, Any], columns: Sequence[Any], units: int, combiner: str, scope: str
) -> LinearSums:
    """The weighted sum of all columns, and a bias.

    Args:
        features: Feature name -> tensor.
        columns: Dense and categorical columns; TF 1's first kind goes through its `linear_model`.
        units: Number of sums.
        combiner: The way a categorical column adds up its values: "sum", "mean" or "sqrtn".
        scope: Variable scope of weights and bias of columns of today's kind.

    Raises:
        ValueError: A column is of another type, or there twice; batch sizes differ.
    """
    if not _tf_private.is_feature_column_v2(columns):
        variables: dict[Any, Any] = {}
        logits = tf1.feature_column.linear_model(
            features, columns, units, combiner, cols_to_vars=variables
        )
        return LinearSums(logits, variables.pop("bias"), list(variables.values()), [])
    categorical = _tf_private.CategoricalColumn
    expected = "either a DenseColumn or CategoricalColumn."
    columns = _sorted(columns, (_api.DenseColumn, categorical), expected)
    state = _State()
    with tf1.variable_scope(scope):
        for column in _named(columns):
            column.create_state(state)
            is_categorical = isinstance(column, categorical)
            size = column.num_buckets if is_categorical else column.variable_shape.num_elements()
            zeros = tf1.zeros_initializer()
            state.create_variable(column, "weights", (size, units), tf.float32, initializer=zeros)
        bias = tf1.get_variable("bias_weights", [units], initializer=tf1.zeros_initializer())
    cache = _api.FeatureTransformationCache(features)
    sums = []
    with tf1.name_scope(scope):
        for column in columns:
            with tf1.name_scope(_tf_private.variable_scope_of_column(column.name)):
                weights = state.get_variable(column, "weights")
                sums.append(_tf_private.weighted_sum(column, cache, state, combiner, weights))
        _tf_private.check_batch_sizes(sums, columns)
        total = tf.add_n(sums, "weighted_sum_no_bias")
        logits = tf.nn.bias_add(total, bias, name="weighted_sum")
    by_column = [(column, state.get_variable(column, "weights")) for column in columns]
    return LinearSums(logits, bias, list(state.variables.values()), by_column)
