"""add_metrics: more metrics for a model that stays as it is."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, host_estimator, numbers

tf1 = tf.compat.v1


def model_fn(features, labels, mode, params):
    spec = falling(features, labels, mode, params)
    metrics = {"mean": tf1.metrics.mean(features), "two": tf1.metrics.mean(features * 0 + 2)}
    return spec._replace(predictions={"double": 2 * features}, eval_metric_ops=metrics)


def labelled():
    return numbers(3)().map(lambda x: (x, -x))


def _no_metrics():
    return {}


@pytest.fixture
def trained(model_dir):
    model = host_estimator(model_dir, model_fn)
    model.train(labelled, steps=1)
    return model


def test_metrics_are_added_to_those_of_the_model(trained):
    def metric_fn(predictions, labels, features, config):
        assert config.model_dir == trained.model_dir
        total = predictions["double"] + labels + features
        return {"added": tf1.metrics.mean(total)}

    more = estimator.add_metrics(trained, metric_fn)
    results = more.evaluate(labelled)
    assert (results["mean"], results["added"]) == (2.0, 4.0)
    assert results["global_step"] == 1
    assert "added" not in trained.evaluate(labelled)


def test_a_metric_of_the_same_name_wins(trained):
    def metric_fn():
        metric = tf.keras.metrics.Mean()
        metric.update_state(tf.constant([7.0]))
        return {"two": metric}

    assert estimator.add_metrics(trained, metric_fn).evaluate(labelled)["two"] == 7.0


def test_the_new_one_trains_and_predicts_as_the_model_does(trained):
    more = estimator.add_metrics(trained, _no_metrics)
    more.train(labelled, steps=1)
    assert more.get_variable_value("global_step") == 2
    assert next(more.predict(labelled)) == {"double": 2.0}


def test_other_arguments_are_refused(trained):
    with pytest.raises(ValueError, match=r"not expected args.*not_recognized"):
        estimator.add_metrics(trained, lambda features, not_recognized: {})
