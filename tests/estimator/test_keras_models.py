"""`model_to_estimator`: a compiled Keras 2 model as an Estimator."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator2strategy import estimator
from estimator2strategy.estimator import RunConfig
from estimator2strategy.estimator.keras_models import model_to_estimator, model_to_estimator_v2
from estimator2strategy.tf1.facade import namespace
from tests import legacy_programs
from tests.hooks import LossRecorder
from tests.same import assert_same

TESTS = Path(__file__).parents[1]
GOLDEN = json.loads((TESTS / "goldens" / "keras_models.json").read_text())
DRAW = np.random.RandomState(1)
X = DRAW.randn(24, 3).astype(np.float32)
Y = DRAW.randn(24, 2).astype(np.float32)


@pytest.fixture(scope="module")
def program():
    with legacy_programs.imported("keras_models") as program:
        yield program


# What others show of one model at a time, together or in another way.
LONG = {"by_objects", "of_tf_optimizer", "several", "weighted"}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] if case in LONG else []) for case in GOLDEN],
)
def test_a_model_trains_evaluates_and_predicts_as_in_tf_1_15(case, program, tmp_path):
    with tf.Graph().as_default():  # as where legacy code runs
        found = program.run(case, str(tmp_path))
    assert_same(json.loads(json.dumps(found)), GOLDEN[case], case)


# --- Models of TF 2, made eagerly.


def made(optimizer="sgd", **options):
    layers = [
        tf_keras.layers.Dense(4, "tanh", input_shape=[3], name="hidden"),
        tf_keras.layers.Dense(2, name="out"),
    ]
    model = tf_keras.Sequential(layers)
    model.compile(optimizer, "mse", **options)
    return model


def batches(size=8):
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(size)


@pytest.mark.oldest
@pytest.mark.parametrize("optimizer", ["sgd", tf_keras.optimizers.legacy.Adam(0.1)])
def test_a_model_of_tf_2_trains_and_evaluates_as_fit_does(optimizer, model_dir):
    model = made(optimizer, metrics=["mae"])
    ours = model_to_estimator_v2(model, model_dir=model_dir)
    losses = LossRecorder()
    ours.train(batches, hooks=[losses])
    expected = [float(model.train_on_batch(x, y)[0]) for x, y in batches()]
    np.testing.assert_allclose(losses.losses, expected, rtol=1e-5)
    loss, mae = model.evaluate(batches(), verbose=0)
    evaluated = ours.evaluate(batches)
    assert evaluated == {
        "loss": pytest.approx(loss, rel=1e-5),
        "mae": pytest.approx(mae, rel=1e-5),
        "global_step": 3,
    }
    predicted = [p["out"] for p in ours.predict(lambda: batches().map(lambda x, y: x))]
    np.testing.assert_allclose(predicted, model.predict(X, verbose=0), rtol=1e-4, atol=1e-6)


def test_a_checkpoint_of_objects_is_one_that_keras_reads(model_dir):
    ours = model_to_estimator_v2(made(), model_dir=model_dir).train(batches)
    model = made()
    model.load_weights(ours.latest_checkpoint()).expect_partial()
    key = "layer_with_weights-1/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    np.testing.assert_array_equal(model.layers[1].kernel, ours.get_variable_value(key))


@pytest.mark.parametrize("checkpoint_format", ["saver", "checkpoint"])
def test_training_goes_on_from_its_own_checkpoint(checkpoint_format, model_dir):
    options = {"model_dir": model_dir, "checkpoint_format": checkpoint_format}
    model_to_estimator(made(), **options).train(batches, steps=2)
    again = model_to_estimator(made(), **options).train(batches, max_steps=3)
    assert again.latest_checkpoint().endswith("model.ckpt-3")


def test_an_optimizer_for_loops_of_tf_2_is_replaced_by_its_namesake(model_dir, log):
    model = made(tf_keras.optimizers.Adam(0.1))
    model_to_estimator(model, model_dir=model_dir).train(batches, steps=1)
    assert isinstance(model.optimizer, tf_keras.optimizers.legacy.Adam)
    assert any("Adam is for TF2's loops" in line for line in log(30))


def test_metrics_may_get_other_names(model_dir):
    model = made(metrics=["mae"])
    ours = model_to_estimator(model, model_dir=model_dir, metric_names_map={"mae": "error"})
    ours.train(batches, steps=1)
    assert set(ours.evaluate(batches, steps=1)) == {"error", "loss", "global_step"}
    ours = model_to_estimator(model, model_dir=model_dir, metric_names_map={"mse": "error"})
    with pytest.raises(ValueError, match=r"Expected keys: \['mae'\], Received: \['mse'\]"):
        ours.evaluate(batches, steps=1)


def test_outputs_get_further_signatures(model_dir):
    outputs = {"out": estimator.export.PredictOutput}
    ours = model_to_estimator(made(), model_dir=model_dir, export_outputs=outputs)

    def receiver_fn():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        return estimator.export.ServingInputReceiver({"hidden_input": x}, {"x": x})

    ours.train(batches, steps=1)
    loaded = tf.saved_model.load(ours.export_saved_model(f"{model_dir}/export", receiver_fn))
    served = loaded.signatures["serving_default"](tf.constant(X))["out"]
    predicted = [p["out"] for p in ours.predict(lambda: batches().map(lambda x, y: x))]
    np.testing.assert_allclose(served, predicted, rtol=1e-5)
    assert "out" in loaded.signatures
    ours = model_to_estimator(made(), model_dir=model_dir, export_outputs={"in": outputs["out"]})
    with pytest.raises(KeyError, match=r"no outputs of the keras model: \['in'\]"):
        ours.evaluate(batches, steps=1)


def test_replicas_train_on_their_parts_of_the_batch(model_dir):
    weights = made().get_weights()
    found = []
    for strategy in (None, tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])):
        model = made("sgd")
        model.set_weights(weights)
        config = RunConfig(f"{model_dir}/{strategy is None}", train_distribute=strategy)
        ours = model_to_estimator(model, config=config)
        # Each replica gets a batch of its own, as in TF 1.15.
        ours.train(functools.partial(batches, 4 if strategy else 8))
        found.append([ours.get_variable_value(f"{n}/kernel") for n in ("hidden", "out")])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_inputs_and_labels_are_found_by_name(model_dir):
    inputs = {"b": tf_keras.Input([3], name="b"), "a": tf_keras.Input([3], name="a")}
    between = tf_keras.layers.Subtract()([inputs["a"], inputs["b"]])
    outputs = tf_keras.layers.Dense(2, name="out")(between)
    model = tf_keras.Model([inputs["b"], inputs["a"]], outputs)
    model.compile("sgd", "mse")
    ours = model_to_estimator(model, model_dir=model_dir)
    ours.train(lambda: batches().map(lambda x, y: ({"a": x, "b": x}, y)), steps=1)
    model.layers[-1].set_weights([ours.get_variable_value(f"out/{n}") for n in ("kernel", "bias")])

    def input_fn():
        return batches().map(lambda x, y: ({"a": x, "b": x * x, "more": y}, {"out": y}))

    assert ours.evaluate(input_fn)["loss"] == pytest.approx(
        model.evaluate([X * X, X], Y, verbose=0), rel=1e-5
    )
    with pytest.raises(KeyError, match=r"inputs \['b'\] are not among the features: it takes"):
        ours.evaluate(lambda: batches().map(lambda x, y: ({"a": x}, y)))


@pytest.mark.oldest
def test_what_is_no_model_to_make_an_estimator_of_is_refused(tmp_path):
    for given, error, message in [
        ({}, ValueError, "Either `keras_model` or `keras_model_path` needs to be provided"),
        (
            {"keras_model": made(), "keras_model_path": "m.h5"},
            ValueError,
            "Give `keras_model` or `keras_model_path`, not both",
        ),
        ({"keras_model": keras.Sequential()}, TypeError, r"Keras 2 .*not <Sequential"),
        (
            {"keras_model": tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[1])])},
            ValueError,
            "has not been compiled yet",
        ),
        (
            {"keras_model": made(), "checkpoint_format": "h5"},
            ValueError,
            'must be one of "checkpoint" or "saver". Got h5',
        ),
    ]:
        with pytest.raises(error, match=message):
            model_to_estimator(model_dir=str(tmp_path), **given)


def test_weights_of_examples_must_be_those_of_outputs(model_dir):
    ours = model_to_estimator(made(), model_dir=model_dir).train(batches, steps=1)

    def input_fn(weights_of):
        def named(x, y):
            return {"features": x, "sample_weights": weights_of(tf.fill([8], 2.0))}, y

        return lambda: batches().map(named)

    weighted = ours.evaluate(input_fn(lambda two: {"out": two}))["loss"]
    assert weighted == pytest.approx(2.0 * ours.evaluate(batches)["loss"], rel=1e-5)
    with pytest.raises(ValueError, match="a list of 2 for a model with 1 outputs"):
        ours.evaluate(input_fn(lambda two: (two, two)))


@pytest.mark.oldest
def test_programs_of_either_version_find_it():
    assert namespace.resolve("tf.keras.estimator.model_to_estimator") is model_to_estimator
    v2 = namespace.resolve("tf.compat.v2.keras.estimator.model_to_estimator")
    assert v2 is model_to_estimator_v2
    deep = namespace.resolve("tensorflow_estimator.python.estimator.keras.model_to_estimator")
    assert deep is model_to_estimator
