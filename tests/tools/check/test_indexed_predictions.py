"""Predictions that are taken for a list."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings

START = """\
import numpy as np
import tensorflow as tf


def build():
    model = tf.contrib.learn.DNNRegressor([3], columns)
    return model


estimator = {kind}
predictions = estimator.predict(input_fn{given})
"""


@pytest.mark.parametrize(
    ("kind", "given", "use", "count"),
    [
        ("tf.estimator.DNNClassifier([3], columns)", "", "predictions[0]", 1),
        ("tf.estimator.Estimator(model_fn)", "", "len(predictions)", 1),
        ("tf.contrib.learn.Estimator(model_fn)", "", "predictions[0, 0]", 1),
        ("tf.contrib.learn.Estimator(model_fn)", ", as_iterable=False", "predictions[0]", 0),
        ("tf.estimator.Estimator(model_fn)", "", "next(predictions)['x'], list(predictions)[0]", 0),
        ("tf.keras.Sequential()", "", "predictions[0]", 0),
        ("build()", "", "np.log1p(predictions)", 1),
        ("build()", "", "labels - predictions", 1),
        ("build()", "", "np.log1p(list(predictions))", 0),
        ("build()", "", "'%s' % predictions", 0),
        ("other()", "", "np.log1p(predictions)", 0),
        ("tf.contrib.learn.SKCompat(build())", "", "predictions['scores']", 0),
    ],
)
def test_predictions_of_an_estimator_are_no_list(kind, given, use, count):
    report = check_text(f"{START.format(kind=kind, given=given)}x = {use}\n", Settings())
    assert [f.rule for f in report.findings].count("E2S227") == count
