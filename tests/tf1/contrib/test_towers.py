"""`replicate_model_fn` on several devices: the numbers are those of TF 1.15 with as many CPUs."""

from __future__ import annotations

import numpy as np
import pytest

import estimator2strategy.tf1 as tf
from estimator2strategy.estimator.run_config import RunConfig

contrib = tf.contrib.estimator
X = np.sin(np.arange(48.0)).reshape(24, 2).astype(np.float32)
Y = np.cos(np.arange(24.0)).reshape(24, 1).astype(np.float32)


def inputs(batch_size=6):
    batches = tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
    return batches.batch(batch_size, drop_remainder=True)


def model_fn(features, labels, mode, params):
    kernel = tf.constant_initializer([[-1.0, -0.6, -0.2], [0.2, 0.6, 1.0]])
    name = None if params.get("unnamed") else "hidden"
    hidden = tf.layers.dense(features["x"], 3, tf.nn.relu, kernel_initializer=kernel, name=name)
    name = None if params.get("unnamed") else "out"
    out = tf.layers.dense(
        hidden, 1, kernel_initializer=tf.constant_initializer([0.3, 0.2, -0.5]), name=name
    )
    if mode == tf.estimator.ModeKeys.PREDICT:
        exports = {"out": tf.estimator.export.PredictOutput({"out": out})}
        return tf.estimator.EstimatorSpec(mode, {"out": out}, export_outputs=exports)
    loss = tf.losses.mean_squared_error(
        labels, out, reduction=params.get("reduction", tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS)
    )
    optimizer = tf.train.AdamOptimizer(0.1)
    if not params.get("plain"):
        optimizer = contrib.TowerOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, out)}
    return tf.estimator.EstimatorSpec(mode, {"out": out}, loss, train_op, metrics)


def trained(model_dir, devices=3, reduction=None, **params):
    names = [f"/cpu:{i}" for i in range(devices)]
    replicated = contrib.replicate_model_fn(model_fn, reduction, names)
    if reduction is not None:
        params["reduction"] = reduction
    session_config = tf.ConfigProto(device_count={"CPU": devices}, allow_soft_placement=True)
    config = RunConfig(model_dir, session_config=session_config)
    estimator = tf.estimator.Estimator(replicated, params=params, config=config)
    return estimator.train(inputs, steps=4)


def observed(estimator):
    names = ["hidden/kernel", "out/kernel", "out/bias/Adam", "beta1_power"]
    values = [np.ravel(estimator.get_variable_value(name)) for name in names]
    results = estimator.evaluate(inputs)
    predicted = [float(p["out"][0]) for p in estimator.predict(inputs)]
    return [*np.concatenate(values), results["loss"], results["mae"], *predicted[:6]]


OF_TF_115 = {
    "weighted_sum": [
        -0.684153,
        -0.273049,
        -0.158927,
        0.496623,
        0.917918,
        0.71059,
        -0.026565,
        0.333796,
        -0.203845,
        0.0594428,
        0.59049,
        3.1188,
        0.646761,
        0.172135,
        -0.0122985,
        -0.0345962,
        0.156102,
        0.0464376,
        -0.0345962,
    ],
    "weighted_sum_by_nonzero_weights": [
        -0.68415,
        -0.273049,
        -0.15893,
        0.496623,
        0.917925,
        0.710588,
        -0.0265894,
        0.333773,
        -0.203843,
        0.00990833,
        0.59049,
        0.519797,
        0.646761,
        0.172106,
        -0.0123052,
        -0.0346004,
        0.156072,
        0.046427,
        -0.0346004,
    ],
}


@pytest.mark.parametrize("reduction", OF_TF_115)
def test_towers_train_evaluate_and_predict_as_in_tf_1_15(model_dir, reduction):
    estimator = trained(model_dir, reduction=reduction)
    assert observed(estimator) == pytest.approx(OF_TF_115[reduction], abs=2e-5)


def test_the_mean_is_the_default_and_equals_one_copy(tmp_path):
    towers = observed(trained(str(tmp_path / "towers")))
    assert towers == pytest.approx(observed(trained(str(tmp_path / "one"), 1)), abs=2e-5)


def test_names_are_those_of_one_copy(tmp_path):
    three = trained(str(tmp_path / "three"), unnamed=True)
    one = trained(str(tmp_path / "one"), 1, unnamed=True)
    assert three.get_variable_names() == one.get_variable_names()


def test_a_batch_that_does_not_divide_is_refused(model_dir):
    replicated = contrib.replicate_model_fn(model_fn, devices=["/cpu:0", "/cpu:1"])
    estimator = tf.estimator.Estimator(replicated, model_dir, params={})
    with pytest.raises(ValueError, match="Batch size 3 needs to be divisible"):
        estimator.train(lambda: inputs(3), steps=1)


def test_an_optimizer_that_does_not_gather_is_refused(model_dir):
    with pytest.raises(ValueError, match="wrap optimizers with TowerOptimizer"):
        trained(model_dir, plain=True)


def test_exports_are_of_all_towers(model_dir, tmp_path):
    estimator = trained(model_dir)

    def receiver():
        x = tf.placeholder(tf.float32, [6, 2])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    folder = estimator.export_saved_model(str(tmp_path / "exports"), receiver)
    served = tf.contrib.predictor.from_saved_model(folder)({"x": X[:6]})["out"]
    predicted = [p["out"] for p in estimator.predict(inputs)][:6]
    np.testing.assert_allclose(served, predicted, atol=1e-6)


def test_sparse_features_are_divided_too():
    with tf.Graph().as_default(), tf.Session() as session:

        def sums(features, mode):
            values = tf.sparse_reduce_sum(features["s"], 1)
            return tf.estimator.EstimatorSpec(mode, {"sum": values})

        sparse = tf.SparseTensor([[0, 0], [2, 1], [3, 0]], [1.0, 2.0, 3.0], [4, 2])
        spec = contrib.replicate_model_fn(sums, devices=["/cpu:0", "/cpu:0"])(
            {"s": sparse}, None, tf.estimator.ModeKeys.PREDICT
        )
        assert session.run(spec.predictions["sum"]).tolist() == [1.0, 0.0, 2.0, 3.0]
