"""Private names of estimator.py of tensorflow_estimator, which copies of canned Estimators use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

VALID_MODEL_FN_ARGS = {"features", "labels", "mode", "params", "self", "config"}


class Gauge:
    """The last values that a program has set, by labels, as those of `monitoring` in TensorFlow.

    Nothing reads them but the program: this package sends no statistics.
    """

    def __init__(self, unset: Any):
        self._unset = unset
        self._cells: dict[tuple[str, ...], GaugeCell] = {}

    def get_cell(self, *labels: str) -> GaugeCell:
        """The cell of these labels."""
        return self._cells.setdefault(labels, GaugeCell(self._unset))


class GaugeCell:
    """One value of a gauge."""

    def __init__(self, value: Any):
        self._value = value

    def set(self, value: Any) -> None:
        self._value = value

    def value(self) -> Any:
        return self._value


# Which methods of Estimators were called, and the kinds of canned ones that were made.
estimator_api_gauge, canned_estimator_api_gauge = Gauge(False), Gauge("")


def check_checkpoint_available(model_dir: str) -> None:
    """Raises ValueError if a folder has no checkpoint."""
    if not tf.train.latest_checkpoint(model_dir):
        raise ValueError(f"Could not find trained model in model_dir: {model_dir}.")


def dict_to_str(dictionary: Mapping[str, Any]) -> str:
    """Results as the log shows them, in the order of their names; bytes are left out."""
    shown = sorted(item for item in dictionary.items() if not isinstance(item[1], bytes))
    return ", ".join(f"{name} = {value}" for name, value in shown)


def extract_metric_update_ops(
    eval_dict: Mapping[str, tuple[Any, Any]], distribution: Any = None
) -> tuple[Any, dict[str, Any]]:
    """The update ops of metrics as one op, None if there are none; and their values.

    Args:
        eval_dict: Name -> value and update op.
        distribution: The strategy of the replicas that the update ops are of.
    """
    in_order = dict(sorted(eval_dict.items()))
    group = distribution.group if distribution else lambda op: op
    updates = [group(update) for _, update in in_order.values()]
    values = {name: value for name, (value, _) in in_order.items()}
    return (tf.group(*updates) if updates else None), values
