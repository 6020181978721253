"""Estimators and heads can be pickled and copied, as in TensorFlow 1.15."""

from __future__ import annotations

import copy
import pickle

import pytest

import estimator2strategy.tf1 as tf1_facade
from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, falling_on_cores, numbers, ones


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.oldest
@pytest.mark.parametrize("again", [pickled, copy.deepcopy])
@pytest.mark.parametrize("cls", [estimator.Estimator, tf1_facade.estimator.Estimator])
def test_a_copy_of_a_trained_estimator_goes_on(model_dir, cls, again):
    model = cls(falling, model_dir, params={"rate": 2})
    model.train(numbers(3))
    other = again(model)
    assert type(other) is type(model)
    assert (other.params, other.model_dir) == ({"rate": 2}, model.model_dir)
    other.train(numbers(2))
    assert other.evaluate(numbers(2))["global_step"] == 5
    model.train(numbers(1))
    assert model.get_variable_value("weight") == -(1 + 2 + 3) - (1 + 2) - 1


def test_a_copy_of_a_trained_tpu_estimator_goes_on(model_dir, emulated_cores):
    emulated_cores(2)
    config = estimator.tpu.RunConfig(model_dir=model_dir)
    model = estimator.tpu.TPUEstimator(falling_on_cores, config=config, train_batch_size=4)
    model.train(ones, steps=1)
    other = pickled(model)
    other.train(ones, steps=1)
    assert other.get_variable_value("weight") == -2.0


def test_heads_can_be_pickled():
    heads = [
        estimator.BinaryClassHead(thresholds=[0.5]),
        estimator.PoissonRegressionHead(compute_full_loss=False),
        estimator.LogisticRegressionHead(),
        estimator.MultiHead([estimator.RegressionHead(name="a")]),
    ]
    for head in heads:
        assert type(pickled(head)) is type(head)
    loss = [one.loss([[2.0]], [[1.0]], {}).numpy() for one in (heads[1], pickled(heads[1]))]
    assert loss[0] == loss[1]
