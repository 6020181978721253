"""Predictions that are taken for a list."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings

START = """\
import tensorflow as tf

estimator = tf.{kind}
predictions = estimator.predict(input_fn{given})
"""


@pytest.mark.parametrize(
    ("kind", "given", "use", "count"),
    [
        ("estimator.DNNClassifier([3], columns)", "", "predictions[0]", 1),
        ("estimator.Estimator(model_fn)", "", "len(predictions)", 1),
        ("contrib.learn.Estimator(model_fn)", "", "predictions[0, 0]", 1),
        ("contrib.learn.Estimator(model_fn)", ", as_iterable=False", "predictions[0]", 0),
        ("estimator.Estimator(model_fn)", "", "next(predictions)['x'], list(predictions)[0]", 0),
        ("keras.Sequential()", "", "predictions[0]", 0),
    ],
)
def test_predictions_of_an_estimator_are_no_list(kind, given, use, count):
    report = check_text(f"{START.format(kind=kind, given=given)}x = {use}\n", Settings())
    assert [f.rule for f in report.findings].count("E2S227") == count
