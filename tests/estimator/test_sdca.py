"""LinearSDCA solves linear models as those of TF 1.15 and TF 2.15 did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.programs import sdca

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "sdca.json").read_text())
CASES = [(version, case) for version in ("v1", "v2") for case in GOLDEN[version]]


def assert_solved(found, expected):
    """Examples are taken in an order that is left to chance, so the last digits differ.

    A loss was read before or after the step, as it happened.
    """
    assert found["summaries"] == expected["summaries"]
    assert found["losses"] == pytest.approx(expected["losses"], rel=1e-2)
    for part in ("variables", "results", "predicted"):
        assert found[part].keys() == expected[part].keys()
        for name, values in expected[part].items():
            np.testing.assert_allclose(
                found[part][name], values, rtol=2e-3, atol=2e-3, err_msg=name
            )


@pytest.mark.parametrize(("version", "case"), CASES)
def test_a_model_is_solved_as_the_original(version, case):
    assert_solved(sdca.run(tf, version, case), GOLDEN[version][case])


AGE = tf.feature_column.numeric_column("age")
SDCA = estimator.experimental.LinearSDCA("id")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: estimator.LinearClassifier([AGE], n_classes=3, optimizer=SDCA),
            "LinearSDCA cannot be used in a multi-class setting",
        ),
        (
            lambda: estimator.LinearRegressor([AGE], label_dimension=2, optimizer=SDCA),
            "LinearSDCA can only be used with one-dimensional label",
        ),
        (
            lambda: estimator.LinearClassifierV2([AGE], sparse_combiner="mean", optimizer=SDCA),
            'sparse_combiner must be "sum"',
        ),
    ],
)
def test_a_model_that_it_cannot_solve_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("l1", "l2", "message"),
    [
        (0.0, 0.0, "symmetric_l2_regularization should be positive"),
        (-1.0, 2.0, "symmetric_l1_regularization should be non-negative"),
    ],
)
def test_a_strength_that_no_problem_has_is_refused(l1, l2, message, model_dir):
    optimizer = estimator.experimental.LinearSDCA("id", 1, 1, l1, l2)
    model = estimator.LinearClassifier([AGE], model_dir, optimizer=optimizer)
    with pytest.raises(ValueError, match=message):
        model.train(lambda: (sdca.features(tf), tf.constant(sdca.BINARY)), steps=1)


def test_weights_that_are_cut_up_are_solved_as_whole_ones(tmp_path):
    """As among parameter servers."""
    words = tf.feature_column.categorical_column_with_vocabulary_list("words", list("abc"))
    size = tf.feature_column.numeric_column("size", 2)

    def solved(folder, **cut):
        model = estimator.LinearClassifier([size, words], folder, optimizer=SDCA, **cut)
        model.train(lambda: (sdca.features(tf), tf.constant(sdca.BINARY)), steps=40)
        return model

    whole = solved(str(tmp_path / "whole"))
    cut = solved(
        str(tmp_path / "cut"),
        partitioner=tf.compat.v1.fixed_size_partitioner(2),
    )
    name = "linear/linear_model/words/weights"
    np.testing.assert_allclose(
        cut.get_variable_value(name), whole.get_variable_value(name), atol=2e-3
    )
