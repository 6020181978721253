"""LegacyModel and `adapt` under JAX: the numbers that they give under TensorFlow, or a refusal."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import Estimator, EstimatorSpec, LegacyModel, Runtime, adapt, estimator
from estimator2strategy.errors import UnsupportedError
from tests.keras_model.programs import BATCH, dataset, metrics_of, network, train_op_of
from tests.strategies import mirrored

tf1 = tf.compat.v1
PARAMS = {"learning_rate": 0.01}
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def model_fn(features, labels, mode, params):
    logits = network(features, mode == "train")
    if mode == "infer":
        return EstimatorSpec(mode, predictions={"p": tf.nn.softmax(logits)})
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    # Adam would make steps of what batch norm leaves of the gradient of a bias: rounding alone.
    optimizer = tf1.train.MomentumOptimizer(0.01, 0.9)
    train_op = train_op_of(loss, optimizer) if mode == "train" else None
    metrics = metrics_of(labels, logits) if mode == "eval" else None
    return EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def tpu_model_fn(features, labels, mode, params):
    logits = network(features, mode == "train")
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf1.train.MomentumOptimizer(0.01, 0.9)
    if params["use_tpu"]:
        optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
    train_op = train_op_of(loss, optimizer) if mode == "train" else None
    metrics = (metrics_of, [labels, logits])
    return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=metrics)


def held_out():
    return dataset(100, repeat=False)


def images():
    return held_out().map(lambda image, label: image)


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> str:
    """A checkpoint after one step of an Estimator."""
    folder = str(tmp_path_factory.mktemp("start"))
    return Estimator(model_fn, folder, params=PARAMS).train(dataset, steps=1).latest_checkpoint()


def variables(model) -> dict[str, np.ndarray]:
    return {name: variable.numpy() for name, variable in model.legacy_variables.items()}


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, err_msg=name, **CLOSE)


class Watching(keras.callbacks.Callback):
    """Keeps the sum of a kernel at the end of each call of steps."""

    def __init__(self):
        super().__init__()
        self.sums = []

    def on_train_batch_end(self, batch, logs=None):
        self.sums.append(float(np.sum(self.model.legacy_variables["hidden/kernel"].numpy())))


def fitted(start, **arguments):
    model = LegacyModel(model_fn, PARAMS, **arguments)
    model.load_checkpoint(start)
    model.compile(steps_per_execution=2)
    watching = Watching()
    history = model.fit(
        dataset(), epochs=2, steps_per_epoch=4, verbose=0, callbacks=[watching]
    ).history
    results = {
        "loss of training": history["loss"],
        "kernel": watching.sums,
        **model.evaluate(held_out(), return_dict=True, verbose=0),
        **model.predict(images(), verbose=0),
    }
    return model, results


@pytest.mark.evidence("legacy_model", "jax")
def test_a_legacy_model_fits_evaluates_and_predicts_under_jax(start, jax_devices):
    expected, of_tensorflow = fitted(start)
    jax_devices(1)
    found, of_jax = fitted(start, runtime=Runtime.JAX)
    assert len(of_jax["kernel"]) == 4
    assert_close(of_jax, of_tensorflow)
    assert_close(variables(found), variables(expected))


@pytest.mark.evidence("legacy_model", "jax")
def test_single_batches_of_a_legacy_model_run_under_jax(start, jax_devices):
    def trained():
        model = LegacyModel(model_fn, PARAMS)
        model.load_checkpoint(start)
        model.compile()
        x, y = next(iter(dataset()))
        losses = [model.train_on_batch(x.numpy(), y.numpy()) for _ in range(3)]
        of_test = model.test_on_batch(x.numpy(), y.numpy())
        called = {f"called {name}": value for name, value in model(x).items()}
        return {"loss": losses, "test": of_test, **model.predict_on_batch(x.numpy()), **called}

    expected = trained()
    jax_devices(1)  # by E2S_RUNTIME
    assert_close(trained(), expected)


def test_a_legacy_model_under_jax_goes_on_from_checkpoints_and_writes_them(
    start, jax_devices, tmp_path
):
    jax_devices(1)
    model, _ = fitted(start)
    path = model.save_checkpoint(tmp_path)
    assert path.endswith("model.ckpt-9")
    other = LegacyModel(model_fn, PARAMS)
    other.load_checkpoint(path)
    other.build(dataset())
    assert_close(variables(other), variables(model))


def test_a_legacy_model_under_jax_refuses_several_replicas_and_functions(start, jax_devices):
    jax_devices(1)
    with (
        mirrored(2).scope(),
        pytest.raises(UnsupportedError, match=r"outside of strategy\.scope"),
    ):
        LegacyModel(model_fn, PARAMS)
    model = LegacyModel(model_fn, PARAMS)
    with pytest.raises(UnsupportedError, match="call it from Python"):
        tf.function(lambda x: model(x), autograph=False)(next(iter(images())))


@pytest.mark.evidence("adapt", "jax")
@pytest.mark.parametrize("cores", [0, 2])
def test_an_adapted_model_trains_and_evaluates_under_jax(start, jax_devices, emulated_cores, cores):
    """On one device, or on cores."""
    on_cores = {"use_tpu": True, "train_batch_size": BATCH} if cores else {}

    def looped(**arguments):
        def data(params):
            return dataset(params.get("batch_size", BATCH))

        function = tpu_model_fn if cores else model_fn
        inputs = {} if cores else {"predict_input_fn": images}
        arguments |= {**inputs, **on_cores, "params": {}, "eval_input_fn": data}
        model = adapt(function, data, steps_per_execution=3, **arguments)
        model.load_checkpoint(start)
        losses = [float(model.train()["loss"]) for _ in range(2)]
        weight = model.legacy_variables["logits/kernel"]
        weight.assign(tf.convert_to_tensor(weight) * 0.5)  # between two calls
        results = {"train": [*losses, float(model.train()["loss"])], **model.evaluate(2)}
        if not cores:
            results |= next(model.predict())
        return model, results

    emulated_cores(cores)
    expected, of_tensorflow = looped()
    jax_devices(cores or 1)
    found, of_jax = looped(runtime=Runtime.JAX)
    assert_close(of_jax, of_tensorflow)
    assert_close(variables(found), variables(expected))


def test_a_train_step_of_an_adapted_model_is_refused_under_jax(jax_devices):
    jax_devices(1)
    model = adapt(model_fn, dataset, params={})
    with pytest.raises(UnsupportedError, match=r"call train\(\)"):
        model.train_step()
