"""The made parts of the page about metrics, from the table of `engine/metrics`."""

from __future__ import annotations

import pages
from estimator2strategy.engine.metrics.metric_table import MetricRow, Weights, rows

_WEIGHTS_NAMES = {
    Weights.ELEMENT: "element",
    Weights.PRODUCT: "product",
    Weights.FLAT: "flat",
    Weights.FLAT_OR_SCALAR: "flat or scalar",
    Weights.ROW: "row",
}


_HEAD = ("function", "nearest in Keras", "weights", "when plain Keras differs", "source")


def page() -> dict[str, str]:
    """`metrics.md`, with its list of how weights broadcast, and a row for each function."""
    weights = "\n".join(f"- *{name}*: {kind.value}." for kind, name in _WEIGHTS_NAMES.items())
    functions = pages.table(_HEAD, map(_cells, rows()))
    return pages.page("metrics.md", {"weights": weights, "functions": functions})


def _cells(row: MetricRow) -> tuple[str, ...]:
    keras_class = f"`{row.keras.removeprefix('keras.metrics.')}`" if row.keras else "none"
    weights = _WEIGHTS_NAMES[row.weights]
    source = f"`metrics_impl.{row.function}`"
    return f"`{row.function}`", keras_class, weights, row.differences, source
