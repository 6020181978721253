"""The part of the guide's page on codemods that compares Keras with TF 1.15, number by number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator2strategy.tools.migrate import replacements
from estimator2strategy.tools.migrate.replacements import Replacement

_MEASURED = Path(__file__).with_name("replacements.json")
ALL_DIGITS = 6
# From so many equal digits on, the page calls a row equal: the last of a float32 are rounding.
EQUAL_DIGITS = 5

_INTRODUCTION = """\
## Keras beside TensorFlow 1.15

Made by `python -m benchmarks.replacements`, with TensorFlow {tensorflow}, Keras {keras} and the
numbers of TensorFlow 1.15.5 that `tests/goldens/replacements/record.py` recorded.

A column is a situation. `=` says that at least six digits are equal, the accuracy of float32; a
number says how many are. Else the cell has the first numbers that differ: that of Keras 3, then that
of TensorFlow 1.15. *tf-keras* names the situations that differ for the class of the same name in
`tf.keras` of this package, which the codemods write into a model_fn. The last column has an
expression that is equal in all situations.
"""

_KINDS = {
    "optimizer": (
        "Optimizers",
        "One variable, three to five steps of given gradients, `rate` is 0.1. *1000 steps*: the "
        "variable after 250, 500, 750 and 1000 steps of rate 0.01. *ids*: the gradients "
        "of an embedding lookup, with an id once in a batch. *rows that rest*: a row is looked up "
        "in the first step alone. *an id twice*: in the same batch. The classes of the last column "
        "are in [examples/tf1_optimizers.py](../examples/tf1_optimizers.py): copy those that you "
        "need. Keras 3 squares the gradients of an id before it adds them up, where the id is twice "
        "in a batch. Its SGD and RMSprop with momentum move rows that nobody looks up, its weight "
        "decay shrinks them, and its Ftrl sets them to what it would have made of no gradient.",
    ),
    "schedule": ("Schedules", "`step` is a scalar int64."),
    "loss": (
        "Losses",
        "A column is a reduction. The default of `tf.losses` is beside `sum_over_batch_size`, that "
        "of Keras, and `tf.losses.Reduction.MEAN` beside `mean_with_sample_weight`. Labels are "
        "`[3, 1]` and weights `[1, 0, 0.5]`, or `[3, 2]` with *two values each*. The functions of "
        "the last column are in TensorFlow 2, and `compile` takes them as a loss.",
    ),
    "layer": (
        "Batch normalization",
        "The output and the moving averages after one step. For images TF 1.15 takes a fused "
        "kernel, which multiplies the variance of n values by n / (n - 1) before it averages it: "
        "8 / 7 here, 1.0001 for 10,000 values. Keras 3 has no class that does so; that of the last "
        "column is in [examples/tf1_layers.py](../examples/tf1_layers.py). The averages of a checkpoint stay as they are.",
    ),
    "column": (
        "Feature columns",
        "The id of each of six examples; -1 is none. A crossed column takes the ids of an identity "
        "column before strings, whatever the order of its keys: give them to `HashedCrossing` "
        "first. Raw integers keep their place.",
    ),
    "metric": (
        "Metrics",
        "After two batches. `keras_metric_for` is in `estimator2strategy.engine.metrics`: see "
        "[metrics.md](metrics.md).",
    ),
}


def measured() -> list[dict[str, Any]]:
    """The cells of each row, in the order of `replacements.rows()`."""
    return json.loads(_MEASURED.read_text(encoding="utf-8"))["rows"]


def differing(cells: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The situations in which a row is not equal."""
    return [situation for situation, cell in cells.items() if cell["digits"] < EQUAL_DIGITS]


def section() -> str:
    """The text of the part."""
    versions = json.loads(_MEASURED.read_text(encoding="utf-8"))
    rows = list(zip(replacements.rows(), measured(), strict=True))
    parts = [_INTRODUCTION.format(**versions)]
    for kind, (title, about) in _KINDS.items():
        parts += [f"### {title}\n", f"{about}\n"]
        parts.append(_table([pair for pair in rows if pair[0].kind == kind]))
    return "\n".join(parts)


def _table(rows: list[tuple[Replacement, dict[str, Any]]]) -> str:
    situations = list(next(cells for _, found in rows for cells in _columns(found)))
    has_model_fn = any(row.keras2 for row, _ in rows)
    head = ["TF 1.15", "Keras 3", *situations, *["tf-keras"] * has_model_fn, "equal"]
    lines = [head, ["---"] * len(head)]
    for row, found in rows:
        cells = found.get("keras3", {})
        lines.append(
            [
                _code(row.legacy),
                _with_values(row, row.keras3) if row.keras3 else "none",
                *(_shown(cells[situation]) if cells else "" for situation in situations),
                *[_of_tf_keras(found)] * has_model_fn,
                _equal(row, found),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _columns(found: dict[str, Any]) -> list[Mapping[str, Any]]:
    return [found[column] for column in ("keras3", "written") if column in found]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _with_values(row: Replacement, text: str) -> str:
    return _code(f"{text}.update_state({row.values})" if row.values else text)


def _shown(cell: Mapping[str, Any]) -> str:
    if cell["digits"] == ALL_DIGITS:
        return "="
    if cell["digits"] >= EQUAL_DIGITS:
        return str(cell["digits"])
    return f"{cell['keras']}, {cell['legacy']}"


def _of_tf_keras(found: dict[str, Any]) -> str:
    if "keras2" not in found:
        return ""
    others = differing(found["keras2"])
    return f"not: {', '.join(others)}" if others else "="


def _equal(row: Replacement, found: dict[str, Any]) -> str:
    """The expression that is equal in all situations."""
    if row.keras3 and not differing(found["keras3"]):
        return "it is"
    if row.written and not differing(found["written"]):
        return _with_values(row, row.written)
    return ""
