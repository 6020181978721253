"""`keras_metrics` hands out the metrics of a program, for use without the program."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.metrics.keras_classes import LegacyMetric, keras_metric_for
from estimator2strategy.engine.metrics.replayed import ReplayedMetric
from tests.engine.runtime.programs import host_estimator

tf1 = tf.compat.v1
tpu = estimator.tpu

RANDOM = np.random.RandomState(3)
X = RANDOM.randn(24, 3).astype(np.float32)
Y = (X[:, :1] > 0).astype(np.float32)


def metric_fn(labels, predictions):
    total = tf1.get_local_variable("total", [], initializer=tf1.zeros_initializer())
    precision = tf1.metrics.precision(labels, predictions > 0.5)
    recall = tf1.metrics.recall(labels, predictions > 0.5)
    return {
        "auc": tf1.metrics.auc(labels, predictions, num_thresholds=50),
        "error": tf1.metrics.mean_absolute_error(labels, predictions),
        "f1": (precision[0] + recall[0], tf.group(precision[1], recall[1])),
        "iou": tf1.metrics.mean_iou(labels, predictions > 0.5, 2),
        "own": (total + 0.0, total.assign_add(tf.reduce_sum(predictions))),
        "precision": precision,
    }


def predicted(features):
    weights = tf1.get_variable("weights", [3, 1], initializer=tf1.ones_initializer())
    return tf.sigmoid(tf.matmul(features, weights))


def model_fn(features, labels, mode, params):
    del params
    predictions = predicted(features)
    loss = tf.reduce_mean(tf.square(predictions - labels))
    return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, predictions]))


def input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((X, Y))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def tpu_estimator(model_dir, use_tpu, metrics=model_fn):
    config = tpu.RunConfig(model_dir=model_dir)
    return tpu.TPUEstimator(
        metrics, config=config, use_tpu=use_tpu, train_batch_size=8, eval_batch_size=8
    )


@pytest.mark.oldest
@pytest.mark.parametrize("cores", [0, 8])
def test_each_metric_of_the_program_is_there(model_dir, emulated_cores, cores):
    emulated_cores(cores)
    metrics = tpu_estimator(model_dir, use_tpu=cores > 0).keras_metrics(input_fn)
    assert metrics.keys() == {"auc", "error", "f1", "iou", "own", "precision"}
    assert all(isinstance(metric, keras.metrics.Metric) for metric in metrics.values())
    assert all(isinstance(metrics[n], LegacyMetric) for n in ("auc", "error", "iou", "precision"))
    assert all(isinstance(metrics[name], ReplayedMetric) for name in ("f1", "own"))
    assert all(metric.name == name for name, metric in metrics.items())


@pytest.mark.parametrize("cores", [0, 8])
def test_metrics_in_model_compile_give_what_evaluate_gives(model_dir, emulated_cores, cores):
    emulated_cores(cores)
    legacy = tpu_estimator(model_dir, use_tpu=cores > 0)
    metrics = legacy.keras_metrics(input_fn)
    model = keras.Sequential([keras.layers.Dense(1, "sigmoid", False, "ones")])
    names = ["auc", "error"]
    model.compile(loss="mse", metrics=[metrics[name] for name in names])
    results = model.evaluate(X, Y, batch_size=10, verbose=0, return_dict=True)
    expected = legacy.evaluate(input_fn, steps=3)
    assert {n: results[n] for n in names} == pytest.approx({n: expected[n] for n in names})


def test_a_metric_that_shares_variables_has_its_own_as_an_object(model_dir):
    metrics = tpu_estimator(model_dir, use_tpu=False).keras_metrics(input_fn)
    metrics["precision"].update_state([0.0, 1.0], [True, True])
    f1 = metrics["f1"]
    assert len(f1.inputs) == 4
    assert metrics["precision"].result() == 0.5
    assert f1.result() == 0.0
    # True and false positives and negatives of a batch, as the recorded ops counted them.
    counts = {"true_positives": 3.0, "false_positives": 1.0, "false_negatives": 1.0}
    f1.update_state(*(next(c for key, c in counts.items() if key in name) for name in f1.inputs))
    assert f1.result() == 0.75 + 0.75
    f1.reset_state()
    assert f1.result() == 0.0


def test_every_call_gives_fresh_metrics(model_dir):
    model = tpu_estimator(model_dir, use_tpu=False)
    first, second = (model.keras_metrics(input_fn)["error"] for _ in range(2))
    first.update_state([[1.0]], [[0.0]])
    assert (first.result(), second.result()) == (1.0, 0.0)


def test_no_batch_is_taken_and_nothing_is_written(tmp_path):
    taken = []

    def counted(value):
        taken.append(value)
        return value

    def input_fn():
        dataset = tf.data.Dataset.range(3)
        return dataset.map(lambda x: tf.numpy_function(counted, [x], tf.int64)).batch(1)

    def model_fn(features, labels, mode):
        del labels
        values = tf.cast(features, tf.float32)
        metrics = {"mean": tf1.metrics.mean(tf.reshape(values, [-1]))}
        return estimator.EstimatorSpec(mode, loss=tf.reduce_sum(values), eval_metric_ops=metrics)

    model = estimator.Estimator(model_fn, str(tmp_path / "model"))
    assert list(model.keras_metrics(input_fn)) == ["mean"]
    assert taken == []
    assert not (tmp_path / "model").exists()


def test_a_metric_without_variables_is_left_out_with_a_warning(model_dir, monkeypatch):
    warnings = []
    monkeypatch.setattr(tf1.logging, "warning", lambda text, *names: warnings.append(text % names))

    def model_fn(features, labels, mode, params):
        del labels, params
        metrics = {"last": (tf.reduce_sum(features), tf.no_op()), "m": tf1.metrics.mean(features)}
        return estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features), eval_metric_ops=metrics)

    metrics = host_estimator(model_dir, model_fn).keras_metrics(lambda: tf.ones([2]))
    assert list(metrics) == ["m"]
    assert any("No Keras metric for last:" in warning for warning in warnings)


def test_a_name_that_no_scope_may_have_is_the_metric_s_all_the_same():
    metric = keras_metric_for("accuracy", name="first class")
    metric.update_state([1.0, 1.0], [1.0, 0.0])
    assert (metric.name, float(metric.result())) == ("first class", 0.5)
    assert [variable.path for variable in metric.variables] == [
        "first_class/total",
        "first_class/count",
    ]
    assert LegacyMetric.from_config(metric.get_config()).name == "first class"
