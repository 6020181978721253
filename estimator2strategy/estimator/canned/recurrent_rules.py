"""The rules for the arguments of recurrent Estimators, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator2strategy.engine.wrong_argument import ArgumentRule
from estimator2strategy.estimator.canned_rules import CANNED_RULES
from estimator2strategy.estimator.contract_rules import flag_rule, or_none

_COLUMNS = CANNED_RULES["linear_feature_columns"]
_UNITS = CANNED_RULES["dnn_hidden_units"]

RECURRENT_RULES: Mapping[str, ArgumentRule] = {
    **CANNED_RULES,
    "sequence_feature_columns": _COLUMNS,
    "context_feature_columns": _COLUMNS,
    "num_units": _UNITS,
    "units": _UNITS._replace(
        holds=lambda value: isinstance(value, int) or _UNITS.holds(value),
        must="must be a number above 0, or a list of such",
    ),
    "cell_type": ArgumentRule(lambda value: True, "", "Pass 'lstm', 'gru', or a class of cells."),
    "rnn_cell_fn": ArgumentRule(
        or_none(callable), "must be callable", "Pass a function that makes the cell, or None."
    ),
    "return_sequences": flag_rule("Pass True or False"),
    "input_layer_partitioner": ArgumentRule(
        or_none(callable), "must be callable", "Pass a partitioner, or None."
    ),
    "sequence_mask": ArgumentRule(
        lambda value: isinstance(value, str), "must be a string", "Pass the name of a feature."
    ),
}


def check_cells(rnn_cell_fn: Any, units: Any, has_type: bool) -> None:
    """Raises ValueError where cells are described twice, or not at all."""
    if rnn_cell_fn and (units is not None or has_type):
        raise ValueError(
            "The sizes (num_units, units) and cell_type must not be specified when using "
            "rnn_cell_fn"
        )
    if not rnn_cell_fn and units is None:
        raise ValueError("The sizes of the layers (num_units, units), or rnn_cell_fn, are missing")
