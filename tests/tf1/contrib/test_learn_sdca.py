"""Linear models of `tf.contrib.learn` that an SDCAOptimizer solves: as in TF 1.15."""

from __future__ import annotations

import pytest

import estimator2strategy.tf1 as tf
from tests.estimator.test_sdca import GOLDEN, assert_solved
from tests.programs import sdca

AGE = tf.contrib.layers.real_valued_column("age")


@pytest.mark.parametrize("case", GOLDEN["learn"])
def test_a_model_is_solved_as_in_tf_1_15(case):
    assert_solved(sdca.run(tf, "learn", case), GOLDEN["learn"][case])


def test_what_it_cannot_solve_is_refused(model_dir):
    learn, optimizer = tf.contrib.learn, tf.contrib.linear_optimizer.SDCAOptimizer("id")
    with pytest.raises(ValueError, match="enable_centered_bias is not supported with SDCA"):
        learn.LinearClassifier([AGE], optimizer=optimizer, enable_centered_bias=True)
    with pytest.raises(ValueError, match="Kernel SVMs are not currently supported"):
        learn.SVM("id", [AGE], kernels=[1])
    model = learn.LinearClassifier([AGE], model_dir, n_classes=3, optimizer=optimizer)
    with pytest.raises(ValueError, match="Unsupported head type"):
        model.fit(input_fn=lambda: (sdca.features(tf), tf.constant(sdca.BINARY)), steps=1)
