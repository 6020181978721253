"""The Keras metrics that compute what a function of `tf.compat.v1.metrics` computed.

    model.compile(metrics=[keras_metric_for("auc", curve="PR", summation_method="majoring")])

One class serves all rows of `table.py`; the rows whose state is a total and a count get a
`keras.metrics.Mean`. Variables are made in the constructor: build metrics eagerly, in the
strategy's scope if there is one, and not below a v1 `tf.Graph`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.engine.metrics import metric_table, shapes


def scope_name(metric: str) -> str:
    """The name of a metric, with `_` in the place of each character that no name scope may have."""
    return re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", metric)


@keras.saving.register_keras_serializable(package="estimator2strategy")
class LegacyMetric(keras.metrics.Metric):
    """A function of `tf.compat.v1.metrics` as a Keras metric, see `keras_metric_for`."""

    def __init__(self, function: str, name: str | None = None, **arguments: Any):
        # An explicit dtype: the floatx that the user may have set does not concern v1 metrics.
        # Keras names a scope after the metric; a key of eval_metric_ops may be no scope's name.
        super().__init__(name=scope_name(name or function), dtype="float32")
        self._row = metric_table.row(function)
        self._arguments = arguments
        known = {**self._row.defaults, **arguments}
        _require_arguments(self._row, known)
        self._constants = {name: known[name] for name in self._row.tensors if name in arguments}
        self._metric = self._row.metric(**{option: known[option] for option in self._row.options})
        self._sums = {
            sum_name: self._variable(sum_name, shape, dtype)
            for sum_name, (shape, dtype) in self._metric.state.items()
        }
        self.name = name or function

    def _variable(self, name: str, shape: tuple[int, ...], dtype: str) -> keras.Variable:
        return self.add_variable(shape=shape, initializer="zeros", dtype=dtype, name=name)

    @property
    def _inputs(self) -> tuple[str, ...]:
        """The parameters of `update_state` by their legacy names, weights excluded."""
        given = (*self._constants, "weights")
        return tuple(name for name in self._row.tensors if name not in given)

    def update_state(self, *tensors: Any, sample_weight: Any = None) -> None:
        """Adds one batch.

        Args:
            *tensors: The legacy function's tensors in its order, such as labels, predictions;
                weights may follow. Shapes and dtypes as the legacy function took them.
            sample_weight: Weights. See `MetricRow.weights` for how they broadcast.

        Raises:
            TypeError: Another number of tensors than the function has.
            ValueError: Shapes that do not fit together.
        """
        inputs = self._inputs
        if len(tensors) == len(inputs) + 1 and sample_weight is None:
            *tensors, sample_weight = tensors  # type: ignore[assignment]  # Keras passes it so
        if len(tensors) != len(inputs):
            raise TypeError(f"{self._row.function} takes {', '.join(inputs)}; got {len(tensors)}.")
        named = dict(zip(inputs, tensors, strict=True))
        if self._row.aligned:
            everything = {**self._constants, **named}
            shapes.require_same_shape(everything["labels"], everything["predictions"])
        if sample_weight is not None:
            named["weights"] = sample_weight
        self.accumulate(named)

    def accumulate(self, tensors: Mapping[str, Any]) -> None:
        """Adds one batch whose shapes v1 has checked already; tensors by legacy name."""
        every = {"weights": None, **self._constants, **tensors}
        for sum_name, addend in self._metric.batch(**every).items():
            _add(self._sums[sum_name], addend)

    def result(self) -> tf.Tensor:
        """The metric over all batches since the last reset, in the dtype that v1 gives."""
        return self._metric.result(
            {name: tf.convert_to_tensor(variable) for name, variable in self._sums.items()}
        )

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "function": self._row.function, **self._arguments}


@keras.saving.register_keras_serializable(package="estimator2strategy")
class LegacyMean(LegacyMetric, keras.metrics.Mean):
    """A `LegacyMetric` whose variables are those of `keras.metrics.Mean`."""

    def _variable(self, name: str, shape: tuple[int, ...], dtype: str) -> keras.Variable:
        del shape, dtype
        return getattr(self, name)


def _add(variable: keras.Variable, addend: tf.Tensor) -> None:
    """As `variable.assign_add`, for which Keras traces a read, a sum and an assignment."""
    value = variable.value  # a tensor in a `keras.StatelessScope`
    if isinstance(value, tf.Variable) and not tf.distribute.has_strategy():
        value.assign_add(tf.cast(addend, value.dtype))
    else:
        variable.assign_add(addend)


def keras_metric_for(function_name: str, *, name: str | None = None, **kwargs: Any) -> LegacyMetric:
    """A Keras metric with the numbers of `tf.compat.v1.metrics.<function_name>`.

    `update_state(labels, predictions, sample_weight)` takes what the legacy function took;
    `model.compile(metrics=[...])` calls it with the model's targets and outputs.

    Args:
        function_name: Such as 'accuracy'; `rows()` lists all.
        name: Name of the metric; the function's by default.
        **kwargs: The legacy function's other arguments, such as `k` or `num_thresholds`. An
            argument that is a tensor there (`normalizer`, `threshold`) can be a constant here
            and is then left out of `update_state`. `mean_tensor` also needs `shape`.

    Returns:
        A `keras.metrics.Metric`, a `keras.metrics.Mean` where `MetricRow.is_mean`. Its result has
        the legacy dtype: float32, or float64 for the functions at k.

    Raises:
        ValueError: No such function, or an argument that it does not have or cannot do without.
    """
    row = metric_table.row(function_name)
    return (LegacyMean if row.is_mean else LegacyMetric)(function_name, name, **kwargs)


def _require_arguments(row: metric_table.MetricRow, known: Mapping[str, Any]) -> None:
    unknown = sorted(set(known) - {*row.options, *row.tensors})
    missing = sorted(set(row.options) - set(known))
    if unknown or missing:
        raise ValueError(
            f"{row.function} has no argument {unknown}. " * bool(unknown)
            + f"{row.function} needs {missing}. " * bool(missing)
            + f"Its options are {list(row.options)}, its tensors {list(row.tensors)}."
        )
