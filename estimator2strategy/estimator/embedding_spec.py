"""`EmbeddingConfigSpec` of a TPUEstimator, and the optimizers that embedding tables can have.

    columns = [tf.compat.v1.tpu.experimental.embedding_column(ids, dimension=8)]
    spec = EmbeddingConfigSpec(columns, AdagradParameters(learning_rate=0.1))

Source: tensorflow_estimator 2.15 tpu/_tpu_estimator_embedding.py, and tensorflow 2.15
python/tpu/tpu_embedding.py, which TensorFlow 2.16 left out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine import _tf_private

tf1 = tf.compat.v1


class OptimizationParameters:
    """Base of the classes below: settings of the optimizer of embedding tables.

    All have `learning_rate`, and, after what is theirs, `use_gradient_accumulation`,
    `clip_weight_min` and `clip_weight_max`, `weight_decay_factor`,
    `multiply_weight_decay_factor_by_learning_rate`, `clip_gradient_min` and `clip_gradient_max`.
    """

    learning_rate: float
    use_gradient_accumulation: bool
    clip_weight_min: float | None
    clip_weight_max: float | None
    weight_decay_factor: float | None
    clip_gradient_min: float | None
    clip_gradient_max: float | None

    def __post_init__(self) -> None:
        clips = (self.clip_gradient_min, self.clip_gradient_max)
        if not self.use_gradient_accumulation and clips != (None, None):
            raise ValueError(
                "When using gradient clipping limits, gradient accumulation must be enabled."
            )
        for name, (holds, words) in _LIMITS.items():
            value = getattr(self, name, None)
            if value is not None and not holds(value):
                raise ValueError(f"{name} must be {words}; got {value}.")


_LIMITS: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "initial_accumulator": (lambda x: x > 0, "greater than zero"),
    "initial_accumulator_value": (lambda x: x >= 0, "greater than or equal to 0."),
    "l1_regularization_strength": (lambda x: x >= 0, "greater than or equal to 0."),
    "l2_regularization_strength": (lambda x: x >= 0, "greater than or equal to 0."),
    "learning_rate_power": (lambda x: x <= 0, "less than or equal to 0."),
    "beta1": (lambda x: 0 <= x < 1, "between 0. and 1"),
    "beta2": (lambda x: 0 <= x < 1, "between 0. and 1"),
}

_BOOL, _FLOAT = "bool", "float"
_DECAY = [
    ("use_gradient_accumulation", _BOOL, True),
    ("clip_weight_min", _FLOAT, None),
    ("clip_weight_max", _FLOAT, None),
    ("weight_decay_factor", _FLOAT, None),
    ("multiply_weight_decay_factor_by_learning_rate", _BOOL, None),
]
_CLIP = [("clip_gradient_min", _FLOAT, None), ("clip_gradient_max", _FLOAT, None)]
_NO_DEFAULT = dataclasses.MISSING


def _parameters(
    name: str, own: Sequence[tuple[Any, ...]], late: Sequence[tuple[Any, ...]] = ()
) -> Any:
    """A class of parameters, in the order of the original's arguments."""
    fields = [("learning_rate", _FLOAT, _NO_DEFAULT), *own, *_DECAY, *late, *_CLIP]
    made = dataclasses.make_dataclass(
        name,
        [
            (field, type_) if default is _NO_DEFAULT else (field, type_, default)
            for field, type_, default in fields
        ],
        bases=(OptimizationParameters,),
        eq=False,
    )
    made.__module__ = __name__
    made.__doc__ = f"Settings of {name.removesuffix('Parameters')} for embedding tables."
    return made


_REGULARIZED = [
    ("l1_regularization_strength", _FLOAT, 0.0),
    ("l2_regularization_strength", _FLOAT, 0.0),
]
StochasticGradientDescentParameters = _parameters("StochasticGradientDescentParameters", [])
AdagradParameters = _parameters("AdagradParameters", [("initial_accumulator", _FLOAT, 0.1)])
ProximalAdagradParameters = _parameters(
    "ProximalAdagradParameters", [("initial_accumulator", _FLOAT, 0.1), *_REGULARIZED]
)
AdamParameters = _parameters(
    "AdamParameters",
    [
        ("beta1", _FLOAT, 0.9),
        ("beta2", _FLOAT, 0.999),
        ("epsilon", _FLOAT, 1e-8),
        ("lazy_adam", _BOOL, True),
        ("sum_inside_sqrt", _BOOL, True),
    ],
)
FtrlParameters = _parameters(
    "FtrlParameters",
    [
        ("learning_rate_power", _FLOAT, -0.5),
        ("initial_accumulator_value", _FLOAT, 0.1),
        *_REGULARIZED,
    ],
    late=[
        ("multiply_linear_by_learning_rate", _BOOL, False),
        ("beta", _FLOAT, 0),
        ("allow_zero_accumulator", _BOOL, False),
    ],
)
MomentumParameters = _parameters(
    "MomentumParameters",
    [("momentum", _FLOAT, _NO_DEFAULT), ("use_nesterov", _BOOL, False)],
)
RMSPropParameters = _parameters(
    "RMSPropParameters",
    [(name, _FLOAT, _NO_DEFAULT) for name in ("rho", "momentum", "epsilon")],
)


class _TableFields(NamedTuple):
    vocabulary_size: int
    dimension: int
    initializer: Any
    combiner: str | None
    hot_id_replication: bool
    learning_rate: float | None
    learning_rate_fn: Callable[[Any], Any] | None
    optimization_parameters: Any


class TableConfig(_TableFields):
    """An embedding table.

    Args:
        vocabulary_size: Number of rows.
        dimension: Number of columns.
        initializer: Makes the initial values; None: truncated normal, stddev 1/sqrt(dimension).
        combiner: How the rows of one example become one: 'mean', 'sum', 'sqrtn'; None: an example
            has one row.
        hot_id_replication: Speed on TPUs.
        learning_rate: In place of the optimizer's.
        learning_rate_fn: `f(global_step)`, likewise.
        optimization_parameters: In place of the EmbeddingConfigSpec's.

    Raises:
        ValueError: A value is out of its range.
    """

    def __new__(
        cls,
        vocabulary_size: int,
        dimension: int,
        initializer: Any = None,
        combiner: str | None = "mean",
        hot_id_replication: bool = False,
        learning_rate: float | None = None,
        learning_rate_fn: Callable[[Any], Any] | None = None,
        optimization_parameters: Any = None,
    ) -> TableConfig:
        if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
            raise ValueError(f"vocabulary_size must >= 1. Received: {vocabulary_size}.")
        if not isinstance(dimension, int) or dimension < 1:
            raise ValueError(f"dimension must be a positive int. Received: {dimension}.")
        if initializer is not None and not callable(initializer):
            raise ValueError(f"initializer must be callable if specified. Received: {initializer}.")
        if combiner not in ("mean", "sum", "sqrtn", None):
            raise ValueError(
                f'combiner must be "mean", "sum", "sqrtn" or None. Received: {combiner}.'
            )
        if learning_rate is not None and learning_rate_fn is not None:
            raise ValueError(
                "At most one of learning_rate and learning_rate_fn can be None. Received: "
                f"{learning_rate} and {learning_rate_fn}"
            )
        stddev = 1 / math.sqrt(dimension)
        return super().__new__(
            cls,
            vocabulary_size,
            dimension,
            initializer or tf1.truncated_normal_initializer(0.0, stddev),
            combiner,
            hot_id_replication,
            learning_rate,
            learning_rate_fn,
            optimization_parameters,
        )


class _FeatureFields(NamedTuple):
    table_id: str
    max_sequence_length: int
    weight_key: str | None


class FeatureConfig(_FeatureFields):
    """A feature that is looked up in a table.

    Args:
        table_id: Name of the table.
        max_sequence_length: 0: the rows of an example are combined. Otherwise they are a sequence,
            cut or filled up to this length.
        weight_key: The feature that holds the weights for the combiner.

    Raises:
        ValueError: `max_sequence_length` is no length.
    """

    def __new__(
        cls, table_id: str, max_sequence_length: int = 0, weight_key: str | None = None
    ) -> FeatureConfig:
        if not isinstance(max_sequence_length, int) or max_sequence_length < 0:
            raise ValueError(
                f"max_sequence_length must be zero or a positive int, got {max_sequence_length}."
            )
        return super().__new__(cls, table_id, max_sequence_length, weight_key)


class _SpecFields(NamedTuple):
    feature_columns: Any
    tensor_core_feature_columns: Any
    optimization_parameters: Any
    clipping_limit: float | None
    pipeline_execution_with_tensor_core: bool
    experimental_gradient_multiplier_fn: Callable[[Any], Any] | None
    feature_to_config_dict: Mapping[str, FeatureConfig] | None
    table_to_config_dict: Mapping[str, TableConfig] | None
    partition_strategy: str
    profile_data_directory: str | None


class EmbeddingConfigSpec(_SpecFields):
    """The embedding tables of a TPUEstimator.

    With `use_tpu=False` the columns are TensorFlow's own, trained by model_fn's optimizer.

    Args:
        feature_columns: Made by `tf.compat.v1.tpu.experimental.embedding_column` or
            `shared_embedding_columns`.
        optimization_parameters: The optimizer of the tables on cores.
        clipping_limit: Has had no effect since TF 1.15.
        pipeline_execution_with_tensor_core: Speed on TPUs.
        experimental_gradient_multiplier_fn: `f(global_step)`, a factor for all gradients.
        feature_to_config_dict: With `table_to_config_dict`, in place of `feature_columns`: feature
            -> FeatureConfig.
        table_to_config_dict: Table -> TableConfig.
        partition_strategy: 'div' or 'mod': which host has which rows.
        profile_data_directory: The folder for lookup statistics, on TPUs.

    Raises:
        ValueError: Not exactly one of the two ways to name the tables is used; the optimizer or
            the partition strategy is unknown; a feature names no table.
        TypeError: A column, or a configuration, is of another type.
    """

    def __new__(
        cls,
        feature_columns: Any = None,
        optimization_parameters: Any = None,
        clipping_limit: float | None = None,
        pipeline_execution_with_tensor_core: bool = False,
        experimental_gradient_multiplier_fn: Callable[[Any], Any] | None = None,
        feature_to_config_dict: Mapping[str, FeatureConfig] | None = None,
        table_to_config_dict: Mapping[str, TableConfig] | None = None,
        partition_strategy: str = "div",
        profile_data_directory: str | None = None,
    ) -> EmbeddingConfigSpec:
        if bool(feature_columns) == bool(feature_to_config_dict and table_to_config_dict):
            raise ValueError(
                "Exactly one of `feature_columns` and the pair `feature_to_config_dict` and "
                "`table_to_config_dict` must be be specified."
            )
        if partition_strategy not in ("div", "mod"):
            raise ValueError(
                f'Invalid partition_strategy {partition_strategy}. Must be one of "mod" or "div".'
            )
        on_tensor_core = None
        if feature_columns:
            _check_columns(feature_columns, optimization_parameters)
            on_tensor_core = [c for c in feature_columns if _is_on_tensor_core(c)]
            feature_columns = [c for c in feature_columns if not _is_on_tensor_core(c)]
        else:
            _check_dicts(feature_to_config_dict or {}, table_to_config_dict or {})
        return super().__new__(
            cls,
            feature_columns=feature_columns or None,
            tensor_core_feature_columns=on_tensor_core,
            optimization_parameters=optimization_parameters,
            clipping_limit=clipping_limit,
            pipeline_execution_with_tensor_core=pipeline_execution_with_tensor_core,
            experimental_gradient_multiplier_fn=experimental_gradient_multiplier_fn,
            feature_to_config_dict=feature_to_config_dict,
            table_to_config_dict=table_to_config_dict,
            partition_strategy=partition_strategy,
            profile_data_directory=profile_data_directory,
        )


def _check_columns(columns: Any, parameters: Any) -> None:
    for column in columns:
        if not isinstance(column, _tf_private.EMBEDDING_SPEC_COLUMNS):
            raise TypeError(
                "All feature columns must be supported types in "
                f"{_tf_private.EMBEDDING_SPEC_COLUMNS}. Got {type(column)}"
            )
    if not isinstance(parameters, OptimizationParameters):
        known = [cls.__name__ for cls in OptimizationParameters.__subclasses__()]
        raise ValueError(
            f"optimization_parameters must be an instance of type {known}. Got {type(parameters)}."
        )


def _is_on_tensor_core(column: Any) -> bool:
    device = getattr(column, "_embedding_lookup_device", None)
    return device is not None and device.name == "TPU_TENSOR_CORE"


def _check_dicts(features: Mapping[str, FeatureConfig], tables: Mapping[str, TableConfig]) -> None:
    for feature, config in features.items():
        if not isinstance(config, FeatureConfig):
            raise TypeError(
                f"Config for feature {feature} must be of type `FeatureConfig`. Got {type(config)}"
            )
        if config.table_id not in tables:
            raise ValueError(
                f"Feature {feature} refers to table {config.table_id} which is not in the "
                "table_to_config_dict."
            )
    for table, config_ in tables.items():
        if not isinstance(config_, TableConfig):
            raise TypeError(
                f"Config for table {table} must be of type `TableConfig`. Got {type(config_)}"
            )


def configurations(
    spec: EmbeddingConfigSpec,
) -> tuple[dict[str, TableConfig], dict[str, FeatureConfig]]:
    """The tables and the features of a spec, by name.

    Raises:
        TypeError: A column is none for embedding tables of cores.
        ValueError: Two columns are of one feature.
    """
    if spec.feature_columns is None:
        return dict(spec.table_to_config_dict or {}), dict(spec.feature_to_config_dict or {})
    tables: dict[str, TableConfig] = {}
    features: dict[str, FeatureConfig] = {}
    for column in spec.feature_columns:
        if not isinstance(column, _tf_private.TPU_EMBEDDING_COLUMNS):
            raise TypeError(
                f"Unsupported feature column {type(column)}. Supported types are "
                f"{_tf_private.TPU_EMBEDDING_COLUMNS}."
            )
        feature = column.get_feature_key_name()
        if feature in features:
            raise ValueError(
                f"Feature column {feature} is used with multiple embeddings and this is not "
                "supported."
            )
        table = f"tbl_{column.get_embedding_var_name()}"
        features[feature] = FeatureConfig(
            table, column.get_max_sequence_length(), column.get_weight_key_name()
        )
        rows, dimension = column.get_embedding_table_size()
        tables[table] = TableConfig(
            rows,
            dimension,
            initializer=column.get_initializer(),
            combiner=column.get_combiner(),
            learning_rate_fn=column.get_learning_rate_fn(),
        )
    return tables, features
