"""The rules for the arguments of canned Estimators and of heads, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator2strategy.engine.wrong_argument import ArgumentRule
from estimator2strategy.estimator.contract_rules import (
    RULES,
    flag_rule,
    is_count,
    is_number,
    is_several,
    or_none,
)


def is_lone_column(value: Any) -> bool:
    """True for a column of `tf.feature_column` that is in no list: some Estimators took one."""
    return hasattr(value, "parse_example_spec") or hasattr(value, "_parse_example_spec")


def _is_columns(value: Any) -> bool:
    """False for names of features, and for a lone column, which is a named tuple itself."""
    several = is_several(value) and not hasattr(value, "_fields")
    return several and not any(isinstance(column, str) for column in value or ())


def _is_units(value: Any) -> bool:
    if value is None or not is_several(value) or isinstance(value, str):
        return False
    try:
        return all(int(units) > 0 for units in value)
    except (TypeError, ValueError):
        return False


def _is_optimizer(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD")
    return not isinstance(value, (int, float, list, tuple, dict))


_OPTIMIZER = (
    "Pass 'Adagrad', 'Adam', 'Ftrl', 'RMSProp' or 'SGD', an optimizer, or a function without "
    "arguments that returns one."
)
_COLUMNS = "Pass a list of columns of tf.feature_column, such as numeric_column('size')."
_UNITS = ArgumentRule(
    or_none(_is_units),
    "must be a list of numbers above 0",
    "Pass the sizes of the hidden layers, such as [64, 32].",
)
_FEATURE_COLUMNS = ArgumentRule(or_none(_is_columns), "must be a list of feature columns", _COLUMNS)
_OPTIMIZER_RULE = ArgumentRule(
    _is_optimizer,
    "must be an optimizer. Unsupported optimizer name or instance",
    _OPTIMIZER,
    ValueError,
)
_ONE_OR_MORE_COLUMNS = _FEATURE_COLUMNS._replace(
    holds=or_none(lambda value: is_lone_column(value) or _is_columns(value))
)
_ACTIVATION = ArgumentRule(
    or_none(lambda value: callable(value) or isinstance(value, str)),
    "must be callable",
    "Pass a function such as tf.nn.relu, the name of one, or None.",
)
_HEAD = ArgumentRule(
    lambda value: hasattr(value, "logits_dimension"),
    "must be a head",
    "Pass a head, such as estimator.BinaryClassHead().",
)

CANNED_RULES: Mapping[str, ArgumentRule] = {
    **RULES,
    "hidden_units": _UNITS._replace(holds=_is_units),
    "dnn_hidden_units": _UNITS,
    "feature_columns": _FEATURE_COLUMNS._replace(
        holds=lambda value: bool(value) and _is_columns(value),
        must="must not be empty, and a list of feature columns",
        error=ValueError,
    ),
    "linear_feature_columns": _ONE_OR_MORE_COLUMNS,
    "dnn_feature_columns": _ONE_OR_MORE_COLUMNS,
    "n_classes": ArgumentRule(
        or_none(is_number), "must be a number", "Pass the number of classes, 2 or more."
    ),
    "label_dimension": ArgumentRule(
        is_number, "must be a number", "Pass the number of values of a label, 1 or more."
    ),
    "weight_column": ArgumentRule(
        lambda value: not isinstance(value, (int, float, list, tuple)) or hasattr(value, "key"),
        "must be a string or NumericColumn. Weight column must be either a string or NumericColumn",
        "Pass the name of the feature that weights examples, or None.",
    ),
    "label_vocabulary": ArgumentRule(
        lambda value: True, "", "Pass a list of the names of all classes, or None."
    ),
    "optimizer": _OPTIMIZER_RULE,
    "linear_optimizer": _OPTIMIZER_RULE,
    "dnn_optimizer": _OPTIMIZER_RULE,
    "activation_fn": _ACTIVATION,
    "dnn_activation_fn": _ACTIVATION,
    "dropout": ArgumentRule(
        lambda value: not isinstance(value, (str, list, dict)) and (value is None or value < 1),
        "must be a number below 1",
        "Pass the part of a hidden layer's outputs to drop, such as 0.5, or None.",
    ),
    "batch_norm": flag_rule("Pass True or False"),
    "loss_reduction": ArgumentRule(lambda value: True, "", "Pass a tf.compat.v1.losses.Reduction."),
    "head": _HEAD,
    "sparse_combiner": ArgumentRule(
        lambda value: value in ("sum", "mean", "sqrtn"),
        "must be a combiner",
        "Pass 'sum', 'mean' or 'sqrtn'.",
        ValueError,
    ),
    "num_clusters": ArgumentRule(
        lambda value: not isinstance(value, (int, float, str, list)) or is_count(value),
        "must be a number above 0",
        "Pass the number of clusters.",
    ),
    "initial_clusters": ArgumentRule(
        lambda value: True, "", "Pass KMeans.RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, or the centers."
    ),
    "distance_metric": ArgumentRule(
        lambda value: True, "", "Pass KMeans.SQUARED_EUCLIDEAN_DISTANCE or COSINE_DISTANCE."
    ),
    "thresholds": ArgumentRule(
        or_none(is_several),
        "must be a list of numbers",
        "Pass a list of numbers between 0 and 1, such as [0.5].",
    ),
    "loss_fn": ArgumentRule(
        or_none(callable), "must be callable", "Pass a function loss_fn(labels, logits), or None."
    ),
    "heads": ArgumentRule(
        lambda value: (
            not value
            or (is_several(value) and all(hasattr(head, "logits_dimension") for head in value))
        ),
        "must be a list of heads",
        "Pass a list of heads that have names, such as [estimator.BinaryClassHead(name='a')].",
    ),
    "head_weights": ArgumentRule(lambda value: True, "", "Pass a number for each head, or None."),
}
KMEANS_RULES: Mapping[str, ArgumentRule] = {**CANNED_RULES, "feature_columns": _FEATURE_COLUMNS}
