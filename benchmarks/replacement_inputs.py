"""The inputs on which the rows of `replacement_rows.py` are compared, by kind and situation.

    TRAININGS["dense"].gradients        # of an optimizer
    INPUTS["schedule"]["0 to 12"]       # names of the expressions' variables, and their values

Like `replacement_rows.py`, this file is loaded under Python 3.7 too.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class OptimizerSteps:
    """Steps of an optimizer on one variable.

    Attributes:
        start: The variable's first value.
        gradients: The gradient of each step; with `ids`, of the rows that a step looks up.
        rates: The learning rate of each step.
        ids: The rows that each step looks up; None if it has a dense gradient.
        each: True if each element is compared by itself, however small it is.
        every: The variable is compared after each step, or after every so many.
    """

    start: Any
    gradients: Any
    rates: Any
    ids: Any = None
    each: bool = False
    every: int = 1


_VECTORS = (
    (0.5, -0.25, 1.0, 0.125),
    (0.75, 0.5, -1.5, 0.25),
    (-0.5, 0.125, 0.25, -1.0),
    (0.25, -1.0, 0.5, 0.75),
    (1.25, 0.375, -0.5, -0.25),
)
_START = (0.5, -1.0, 2.0, 0.25)
_PAIRS = ((0.5, -0.25), (1.0, 0.125), (-0.75, 0.5), (-0.25, 1.5))
_TABLE = ((0.5, 1.0), (-1.0, 2.0), (0.25, -0.5), (1.5, -0.75), (-0.125, 0.375))
_SMALL = (1e-3, -1e-5, 1e-7, -1e-9)
_MANY = tuple(tuple((number * (i + 3) % 17 - 7) / 8 for i in range(4)) for number in range(1000))

TRAININGS = {
    "dense": OptimizerSteps(_START, _VECTORS, (0.1,) * 5),
    "rate changes": OptimizerSteps(_START, _VECTORS, (0.1, 0.1, 0.02, 0.02, 0.3)),
    "small gradients": OptimizerSteps((0.0,) * 4, (_SMALL,) * 3, (0.1,) * 3, each=True),
    "1000 steps": OptimizerSteps(_START, _MANY, (0.01,) * 1000, every=250),
    # The same rows in each step, and others that nobody looks up.
    "ids": OptimizerSteps(_TABLE, (_PAIRS[:2], _PAIRS[1:3], _PAIRS[2:]), (0.1,) * 3, ((1, 3),) * 3),
    # Row 1 is looked up in the first step, and never again.
    "rows that rest": OptimizerSteps(
        _TABLE,
        (_PAIRS[:2], _PAIRS[2:3], _PAIRS[3:], _PAIRS[1:2]),
        (0.1,) * 4,
        ((1, 3), (3,), (3,), (3,)),
    ),
    "an id twice": OptimizerSteps(
        _TABLE,
        (_PAIRS[:3], _PAIRS[1:], _PAIRS[:3]),
        (0.1,) * 3,
        ((1, 1, 3), (3, 1, 3), (1, 1, 3)),
    ),
}

# TF 1.15's reduction, and the one of Keras; the first pair is TF 1.15's default.
REDUCTIONS = {
    "default": ("weighted_sum_by_nonzero_weights", "sum_over_batch_size"),
    "batch size": ("weighted_sum_over_batch_size", "sum_over_batch_size"),
    "mean": ("weighted_mean", "mean_with_sample_weight"),
    "sum": ("weighted_sum", "sum"),
    "none": ("none", None),
}
_THREE = {
    "one_hot": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    "classes": [0, 2, 1],
    "logits": [[0.5, 0.25, -0.75], [-1.0, 0.5, 0.25], [0.75, -0.5, 1.0]],
}
_ONE_VALUE = {
    **_THREE,
    "labels": [[1.0], [0.0], [1.0]],
    "predictions": [[0.25], [2.5], [-0.75]],
    "chances": [[0.25], [0.875], [0.75]],
}
_TWO_VALUES = {
    **_THREE,
    "labels": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
    "predictions": [[0.25, 0.5], [2.5, -0.5], [-0.75, 1.5]],
    "chances": [[0.25, 0.5], [0.875, 0.125], [0.75, 0.625]],
}
_WEIGHTS = {"weights": [[1.0], [0.0], [0.5]], "row_weights": [1.0, 0.0, 0.5]}
_EQUAL = {"weights": [[1.0], [1.0], [1.0]], "row_weights": [1.0, 1.0, 1.0]}
_LOSSES = {
    "default": ("default", _ONE_VALUE, _EQUAL),
    "default, a weight is 0": ("default", _ONE_VALUE, _WEIGHTS),
    "batch size, a weight is 0": ("batch size", _ONE_VALUE, _WEIGHTS),
    "mean": ("mean", _ONE_VALUE, _WEIGHTS),
    "sum": ("sum", _ONE_VALUE, _WEIGHTS),
    "none": ("none", _ONE_VALUE, _WEIGHTS),
    "default, two values each": ("default", _TWO_VALUES, _EQUAL),
    "sum, two values each": ("sum", _TWO_VALUES, _WEIGHTS),
}

_FIRST_BATCH = {
    "labels": [1, 0, 1, 0],
    "targets": [0.5, 0.25, 1.0, -0.5],
    "scores": [0.875, 0.25, 0.375, 0.0],
    "classes": [0, 2, 1, 1],
    "guesses": [0, 2, 2, 1],
    "one_hot": [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]],
    "logits": [[0.5, 0.25, -0.75], [-1.0, 0.5, 0.25], [0.75, -0.5, 1.0], [0.25, 0.5, 0.0]],
}
_LAST_BATCH = {
    "labels": [1, 0],
    "targets": [1.5, 0.0],
    "scores": [0.625, 0.75],
    "classes": [2, 0],
    "guesses": [0, 0],
    "one_hot": [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
    "logits": [[0.5, 0.25, -0.75], [1.0, 0.5, 0.25]],
}
_NO_POSITIVES = {**_FIRST_BATCH, "labels": [0, 0, 0, 0]}
_ONES = [1.0, 1.0, 1.0, 1.0]
_METRICS = {
    "batches of 4 and 2": (
        {**_FIRST_BATCH, "weights": _ONES},
        {**_LAST_BATCH, "weights": _ONES[:2]},
    ),
    "weights": (
        {**_FIRST_BATCH, "weights": [0.5, 2.0, 0.0, 0.25]},
        {**_LAST_BATCH, "weights": [1.5, 0.75]},
    ),
    "no positives": ({**_NO_POSITIVES, "weights": _ONES},),
}

_EIGHT = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
_COLUMN = {
    "words": ["red", "blue", "green", "grey", "pink", "blue"],
    "tags": ["a", "b", "c", "a", "b", "c"],
    "ids": [3, 7, 1, 0, 8, 2],
    "x": [-1.0, 0.0, 0.5, 1.0, 2.0, -0.5],
}
_NAN = float("nan")

INPUTS = {
    "schedule": {
        "before the boundary": {"steps": [0, 1, 5, 9]},
        "at it": {"steps": [10, 20, 30]},
        "after it": {"steps": [11, 19, 21, 25, 31, 1000, 16777217]},
    },
    "loss": {
        situation: {
            **values, **weights, "reduction": REDUCTIONS[kind],
        }
        for situation, (kind, values, weights) in _LOSSES.items()
    },
    "layer": {
        "8 values of an image": {"x": [[[[v] for v in _EIGHT[:4]], [[v] for v in _EIGHT[4:]]]]},
        "8 rows": {"x": [[v] for v in _EIGHT]},
    },
    "column": {
        "values, boundaries": _COLUMN,
        "-1, NaN": {**_COLUMN, "ids": [-1, 7, 1, -1, 0, 2], "x": [_NAN] * 6},
    },
    "metric": _METRICS,
}  # fmt: skip
