"""The private model_fns of TF 2's canned Estimators train what the Estimators train."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.canned import model_fns, sdca

COLUMNS = [tf.feature_column.numeric_column("x", shape=(2,))]
CONFIG = estimator.RunConfig(tf_random_seed=1)


def input_fn():
    features = {"x": np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]], np.float32)}
    return tf.data.Dataset.from_tensors((features, np.array([[1.0], [0.0], [2.0]]))).repeat()


def dnn_fn(features, labels, mode, config):
    head = estimator.RegressionHead()
    return model_fns.dnn_model_fn_v2(features, labels, mode, head, [3], COLUMNS, config=config)


def linear_fn(features, labels, mode, config):
    head = estimator.RegressionHead()
    return model_fns.linear_model_fn_v2(features, labels, mode, head, COLUMNS, "Ftrl", config)


def loss_of(trained: estimator.Estimator) -> float:
    trained.train(input_fn, max_steps=3)
    return trained.evaluate(input_fn, steps=1)["loss"]


@pytest.mark.parametrize(
    ("model_fn", "canned"),
    [
        (dnn_fn, lambda: estimator.DNNRegressorV2([3], COLUMNS, config=CONFIG)),
        (linear_fn, lambda: estimator.LinearRegressorV2(COLUMNS, config=CONFIG)),
    ],
)
def test_a_model_fn_trains_what_its_estimator_trains(model_fn, canned):
    assert loss_of(estimator.Estimator(model_fn, config=CONFIG)) == loss_of(canned())


def test_a_specification_for_a_tpu_is_refused():
    with pytest.raises(UnsupportedError, match="use_tpu"):
        model_fns.dnn_model_fn_v2({}, None, "train", None, [1], COLUMNS, use_tpu=True)


def test_copies_of_linear_classifier_can_check_their_sdca():
    optimizer = sdca.LinearSDCA("id")
    sdca.check_sdca_of_classifier(COLUMNS, 2, optimizer, "sum")
    with pytest.raises(ValueError, match="multi-class"):
        sdca.check_sdca_of_classifier(COLUMNS, 3, optimizer, "sum")
