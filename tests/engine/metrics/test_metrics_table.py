"""The rows are complete, and what they say about plain Keras classes is true."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from metrics_parity import record

from estimator2strategy.engine.metrics import keras_metric_for, rows
from estimator2strategy.engine.metrics.metric_table import row

# The arguments without a default, for building each metric once.
REQUIRED = {
    "k": 2,
    "dim": 1,
    "num_classes": 3,
    "thresholds": [0.5],
    "specificity": 0.5,
    "sensitivity": 0.5,
    "shape": (2, 3),
    "class_id": None,
}


def test_there_is_one_row_for_each_public_function() -> None:
    public = {name for name in dir(tf.compat.v1.metrics) if not name.startswith("_")}

    assert [row.function for row in rows()] == list(dict.fromkeys(r.function for r in rows()))
    assert {row.function for row in rows()} == public


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.function)
def test_every_row_can_be_documented_and_built(row) -> None:
    options = {
        name: REQUIRED[name]
        for name in row.options
        if name in REQUIRED and name not in row.defaults
    }
    metric = keras_metric_for(row.function, **options)

    assert isinstance(metric, keras.metrics.Metric)
    assert isinstance(metric, keras.metrics.Mean) == row.is_mean
    assert metric.name == row.function
    assert row.differences
    assert row.function in row.source
    assert not row.keras or hasattr(keras.metrics, row.keras.removeprefix("keras.metrics."))
    if row.is_mean:
        named = getattr(keras.metrics, row.keras.removeprefix("keras.metrics."))
        assert issubclass(named, keras.metrics.Mean)


def test_an_unknown_function_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match="accuracy, auc, average_precision_at_k"):
        row("f1")


CLOSE_IDS = {"labels": np.array([2**24 + 1]), "predictions": np.float32([2**24])}
LOW = {"labels": np.array([1, 0]), "predictions": np.float32([0.3, 0.0])}
NO_POSITIVES = {"labels": np.array([0, 0]), "predictions": np.float32([0.2, 0.7])}
RANKED = {"labels": np.array([0, 0, 0, 1, 1]), "predictions": np.float32([0.1, 0.2, 0.8, 0.3, 0.9])}
LIGHT = {
    "labels": np.array([0, 0, 1, 2]),
    "predictions": np.array([0, 1, 1, 2]),
    "weights": np.float32([0.5, 0.3, 0.2, 1]),
}
NEGATIVE = {"values": np.float32([1, 2]), "weights": np.float32([-3, 1])}
LARGE = {"labels": np.array([1e6 + 0.1, 1e6]), "predictions": np.array([1e6 + 0.3, 1e6])}
LONG = {"labels": np.float32([[3, 4]]), "predictions": np.float32([[1, 0]])}
# Function, batch, options, Keras's metric, the legacy number, Keras's number.
DIFFERENCES = [
    ("mean", NEGATIVE, {}, keras.metrics.Mean, 0.0, 0.5),
    ("accuracy", CLOSE_IDS, {}, keras.metrics.Accuracy, 0.0, 1.0),
    ("precision", LOW, {}, keras.metrics.Precision, 1.0, 0.0),
    ("recall", LOW, {}, keras.metrics.Recall, 1.0, 0.0),
    ("true_positives", LOW, {}, keras.metrics.TruePositives, 1.0, 0.0),
    ("auc", NO_POSITIVES, {}, keras.metrics.AUC, 1.0, 0.0),
    (
        "sensitivity_at_specificity",
        RANKED,
        {"specificity": 0.7},
        lambda: keras.metrics.SensitivityAtSpecificity(0.7),
        1.0,
        0.5,
    ),
    (
        "specificity_at_sensitivity",
        RANKED,
        {"sensitivity": 0.6},
        lambda: keras.metrics.SpecificityAtSensitivity(0.6),
        1.0,
        2 / 3,
    ),
    ("mean_iou", LIGHT, {"num_classes": 3}, lambda: keras.metrics.MeanIoU(3), 0.675, 1.0),
    ("root_mean_squared_error", LARGE, {}, keras.metrics.RootMeanSquaredError, 0.141421, 0.132583),
    ("mean_cosine_distance", LONG, {"dim": 1}, keras.metrics.CosineSimilarity, -2.0, 0.6),
]


@pytest.mark.filterwarnings("ignore:You are passing weight as")
@pytest.mark.parametrize(
    ("function", "batch", "options", "keras_class", "legacy", "plain"),
    DIFFERENCES,
    ids=[difference[0] for difference in DIFFERENCES],
)
def test_plain_keras_differs_as_the_row_says(
    function, batch, options, keras_class, legacy, plain
) -> None:
    recorded = record(function, batch, **options)
    metric = keras_class()
    *tensors, weights = [batch.get(name) for name in row(function).tensors]
    metric.update_state(*tensors, sample_weight=weights)

    assert recorded.legacy([batch]) == pytest.approx(legacy, abs=1e-5)
    assert recorded.new([batch]) == pytest.approx(legacy, abs=1e-5)
    assert metric.result().numpy() == pytest.approx(plain, abs=1e-5)
