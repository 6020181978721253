"""The matrix of legacy metric calls that are compared: at least one per row of the table."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from metrics_parity import Batch, Case

Rng = np.random.RandomState
MATRIX_WEIGHTS = ("none", "scalar", "element", "column", "row", "full")


def _classes(rng: Rng, n: int) -> Batch:
    return {"labels": rng.randint(0, 3, n), "predictions": rng.randint(0, 3, n)}


def _big_ids(rng: Rng, n: int) -> Batch:
    # Float32 cannot tell 2**24 from 2**24 + 1.
    base = 2**40
    return {"labels": base + rng.randint(0, 2, n), "predictions": base + rng.randint(0, 2, n)}


def _class_columns(rng: Rng, n: int) -> Batch:
    return {"labels": rng.randint(0, 3, (n, 1)), "predictions": rng.randint(0, 3, n)}


def _class_matrix(rng: Rng, n: int) -> Batch:
    return {"labels": rng.randint(0, 2, (n, 3)), "predictions": rng.randint(0, 2, (n, 3))}


def _float_classes(rng: Rng, n: int) -> Batch:
    predictions = np.float32(rng.randint(0, 3, n) + rng.choice([0.0, 0.7], n))
    return {"labels": rng.randint(0, 3, n), "predictions": predictions}


def _words(rng: Rng, n: int) -> Batch:
    words = np.array([b"yes", b"no"], dtype=object)
    return {"labels": rng.choice(words, n), "predictions": rng.choice(words, n)}


def _floats(rng: Rng, n: int) -> Batch:
    return {"labels": np.float32(rng.randn(n)), "predictions": np.float32(rng.randn(n))}


def _doubles(rng: Rng, n: int) -> Batch:
    # Differences that float32 inputs would lose.
    return {"labels": 1e6 + rng.rand(n), "predictions": 1e6 + rng.rand(n)}


def _float_matrix(rng: Rng, n: int) -> Batch:
    return {"labels": np.float32(rng.randn(n, 3)), "predictions": np.float32(rng.randn(n, 3))}


def _normalized(rng: Rng, n: int) -> Batch:
    return {**_floats(rng, n), "normalizer": rng.choice(np.float32([0.0, 0.5, 3.0]), n)}


def _values(rng: Rng, n: int) -> Batch:
    return {"values": np.float32(rng.rand(n))}


def _value_matrix(rng: Rng, n: int) -> Batch:
    return {"values": np.float32(rng.rand(n, 3))}


def _value_ints(rng: Rng, n: int) -> Batch:
    return {"values": rng.randint(0, 9, n)}


def _value_table(rng: Rng, n: int) -> Batch:
    return {"values": np.float32(rng.rand(4, 3))}  # the same shape in every batch, as v1 demands


def _booleans(rng: Rng, n: int) -> Batch:
    # 0.3 and -2.0 are True as well.
    predictions = rng.choice(np.float32([0.0, 0.0, 0.3, 1.0, -2.0]), n)
    return {"labels": rng.randint(0, 2, n), "predictions": predictions}


def _boolean_matrix(rng: Rng, n: int) -> Batch:
    return {"labels": rng.rand(n, 3) < 0.5, "predictions": rng.rand(n, 3) < 0.5}


def _probabilities(rng: Rng, n: int) -> Batch:
    # Many of them equal to a threshold.
    predictions = np.float32(rng.choice([rng.rand(), 0.0, 1.0, 0.5, 0.25, 1 / 3], n))
    return {"labels": rng.randint(0, 2, n), "predictions": predictions}


def _probability_matrix(rng: Rng, n: int) -> Batch:
    return {"labels": rng.rand(n, 3) < 0.5, "predictions": np.float32(rng.rand(n, 3))}


def _scores(rng: Rng, n: int) -> Batch:
    return {"labels": rng.randint(0, 5, (n, 2)), "predictions": np.float32(rng.rand(n, 5))}


def _scores_one_label(rng: Rng, n: int) -> Batch:
    return {"labels": rng.randint(0, 5, n), "predictions": np.float32(rng.rand(n, 5))}


def _odd_labels(rng: Rng, n: int) -> Batch:
    # -1 and 7 are no classes.
    return {"labels": rng.randint(-1, 8, (n, 3)), "predictions": np.float32(rng.rand(n, 5))}


def _sparse_scores(rng: Rng, n: int) -> Batch:
    present = rng.rand(n, 2) < 0.8
    present[:, 0] = True
    indices = np.argwhere(present)
    labels = tf.compat.v1.SparseTensorValue(
        indices, rng.randint(0, 5, len(indices)), np.array([n, 2])
    )
    return {"labels": labels, "predictions": np.float32(rng.rand(n, 5))}


def _sequence_scores(rng: Rng, n: int) -> Batch:
    predictions = np.float32(rng.rand(n, 3, 5))
    return {"labels": rng.randint(0, 5, (n, 3, 2)), "predictions": predictions}


def _top(rng: Rng, n: int) -> Batch:
    order = np.argsort(rng.rand(n, 5))[:, :3]
    return {"labels": rng.randint(0, 5, (n, 2)), "predictions_idx": order}


VECTOR_WEIGHTS = ("none", "scalar", "element", "column", "ints", "zero")
MEANS = [
    Case("mean", _values, weights=VECTOR_WEIGHTS),
    Case("mean", _value_matrix, weights=MATRIX_WEIGHTS, label="matrix"),
    Case("mean", _value_ints, label="ints", exact=True),
    Case("accuracy", _classes, weights=VECTOR_WEIGHTS, exact=True),
    Case("accuracy", _big_ids, label="ids-beyond-float32", exact=True),
    Case("accuracy", _class_columns, weights=VECTOR_WEIGHTS, label="label-column", exact=True),
    Case("accuracy", _class_matrix, weights=MATRIX_WEIGHTS, label="matrix", exact=True),
    Case("accuracy", _float_classes, label="float-predictions", exact=True),
    Case("accuracy", _words, label="strings", exact=True),
    Case("mean_absolute_error", _floats, weights=VECTOR_WEIGHTS),
    Case("mean_squared_error", _floats, weights=VECTOR_WEIGHTS),
    Case("mean_squared_error", _float_matrix, weights=MATRIX_WEIGHTS, label="matrix"),
    Case("mean_squared_error", _doubles, label="float64"),
    Case("mean_squared_error", _classes, label="ints"),
    Case("root_mean_squared_error", _floats, weights=VECTOR_WEIGHTS),
    Case("root_mean_squared_error", _float_matrix, weights=MATRIX_WEIGHTS, label="matrix"),
    Case("mean_relative_error", _normalized),
    Case("mean_cosine_distance", _float_matrix, {"dim": 1}, ("none", "scalar", "column")),
    Case("percentage_below", _values, {"threshold": 0.4}, exact=True),
    Case("mean_tensor", _value_table, weights=("none", "scalar", "row")),
]
COUNTS = [
    Case(function, batch, weights=weights, label=label, exact=True)
    for function in (
        "true_positives",
        "false_negatives",
        "true_negatives",
        "false_positives",
        "precision",
        "recall",
    )
    for batch, weights, label in (
        (_booleans, VECTOR_WEIGHTS, ""),
        (_boolean_matrix, MATRIX_WEIGHTS, "matrix"),
    )
]
AT_THRESHOLDS = [
    Case(function, _probabilities, {"thresholds": [0.5, 0.25, 1.0]}, exact=True)
    for function in (
        "true_positives_at_thresholds",
        "false_negatives_at_thresholds",
        "true_negatives_at_thresholds",
        "false_positives_at_thresholds",
        "precision_at_thresholds",
        "recall_at_thresholds",
    )
]
CURVES = [
    Case("auc", _probabilities),
    Case("auc", _probability_matrix, weights=MATRIX_WEIGHTS, label="matrix"),
    Case("auc", _probabilities, {"thresholds": [0.9, 0.25, 0.5]}, label="thresholds"),
    *(
        Case(
            "auc",
            _probabilities,
            {"curve": curve, "summation_method": method, "num_thresholds": 21},
            ("none", "element"),
            f"{curve}-{method}",
        )
        for curve in ("ROC", "PR")
        for method in ("trapezoidal", "careful_interpolation", "minoring", "majoring")
    ),
    Case("sensitivity_at_specificity", _probabilities, {"specificity": 0.6}),
    Case("specificity_at_sensitivity", _probabilities, {"sensitivity": 0.6, "num_thresholds": 9}),
]
MATRICES = [
    Case("mean_iou", _classes, {"num_classes": 4}, ("none", "element", "zero")),
    Case("mean_iou", _class_matrix, {"num_classes": 2}, ("none", "full"), "matrix"),
    Case("mean_per_class_accuracy", _classes, {"num_classes": 4}),
    Case("mean_per_class_accuracy", _float_classes, {"num_classes": 3}, label="float-predictions"),
]
ROW_WEIGHTS = ("none", "scalar", "element", "zero")
RANKINGS = [
    *(
        Case(function, batch, options, ROW_WEIGHTS, label)
        for function in ("precision_at_k", "recall_at_k")
        for batch, options, label in (
            (_scores, {"k": 2}, ""),
            (_scores_one_label, {"k": 3}, "one-label"),
            (_scores, {"k": 3, "class_id": 1}, "class"),
            (_sparse_scores, {"k": 2}, "sparse"),
            (_sparse_scores, {"k": 3, "class_id": 1}, "sparse-class"),
        )
    ),
    Case("precision_at_k", _sequence_scores, {"k": 2}, ("none", "full", "column"), "sequence"),
    Case("precision_at_top_k", _top, {"k": 3}, ROW_WEIGHTS),
    Case("recall_at_top_k", _top, {"class_id": 2}, ROW_WEIGHTS),
    Case("average_precision_at_k", _scores, {"k": 3}, ROW_WEIGHTS),
    Case("average_precision_at_k", _odd_labels, {"k": 2}, ROW_WEIGHTS, "odd-labels"),
    Case("average_precision_at_k", _scores_one_label, {"k": 1}, ROW_WEIGHTS, "one-label"),
    Case("average_precision_at_k", _sparse_scores, {"k": 3}, ROW_WEIGHTS, "sparse"),
    Case("average_precision_at_k", _sequence_scores, {"k": 2}, ("none", "full"), "sequence"),
    Case("sparse_precision_at_k", _scores, {"k": 2}),
    Case("sparse_average_precision_at_k", _scores, {"k": 2}),
]
CASES = [*MEANS, *COUNTS, *AT_THRESHOLDS, *CURVES, *MATRICES, *RANKINGS]
