"""Keras models inside a legacy model_fn, and weights that go from legacy scopes to Keras layers."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator2strategy import (
    Estimator,
    EstimatorSpec,
    LegacyModel,
    keras_updates,
    transfer_weights,
)
from estimator2strategy.errors import CheckpointError
from tests.keras_model.programs import dataset, digits, model_fn

tf1 = tf.compat.v1


def made_of(library):
    """A model_fn around a model of `library`, and the modes that it was called in."""
    modes = []

    def keras_model_fn(features, labels, mode):
        modes.append(mode)
        layers = library.layers
        model = library.Sequential(
            [
                layers.Dense(32, activation="relu", name="hidden"),
                layers.BatchNormalization(momentum=0.5, name="bn"),
                layers.Dropout(0.2, seed=3),
                layers.Dense(10, name="logits"),
            ],
            name="net",
        )
        logits = model(features, training=mode == "train")
        if mode == "infer":
            return EstimatorSpec(mode, predictions={"p": tf.nn.softmax(logits)})
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        with tf.control_dependencies(keras_updates(model)):
            optimizer = tf1.train.AdamOptimizer(0.01)
            train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        accuracy = tf1.metrics.accuracy(labels, tf.argmax(logits, 1))
        return EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy}
        )

    return keras_model_fn, modes


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras3", "tf_keras"], scope="class")
class TestKerasInModelFn:
    @pytest.fixture(scope="class")
    def trained(self, library, tmp_path_factory):
        keras_model_fn, modes = made_of(library)
        estimator = Estimator(keras_model_fn, str(tmp_path_factory.mktemp("model")))
        return estimator.train(dataset, steps=60), modes

    def test_variables_are_in_the_checkpoint_by_name(self, library, trained):
        names = trained[0].get_variable_names()
        assert [name for name in names if "seed" not in name] == [
            "beta1_power",
            "beta2_power",
            "global_step",
            *(
                f"net/{name}{slot}"
                for name in (
                    "bn/beta",
                    "bn/gamma",
                    "bn/moving_mean",
                    "bn/moving_variance",
                    "hidden/bias",
                    "hidden/kernel",
                    "logits/bias",
                    "logits/kernel",
                )
                for slot in ("", "/Adam", "/Adam_1")
                if not (slot and "moving" in name)
            ),
        ]

    def test_batch_norm_is_updated(self, library, trained):
        means = trained[0].get_variable_value("net/bn/moving_mean")
        assert np.count_nonzero(means) > len(means) / 2

    def test_it_evaluates_and_predicts(self, library, trained):
        estimator, modes = trained
        assert estimator.evaluate(dataset, steps=10)["accuracy"] > 0.9
        images, labels = digits()
        data = lambda: tf.data.Dataset.from_tensor_slices(images[:64]).batch(64)  # noqa: E731
        predicted = [p["p"].argmax() for p in estimator.predict(data)]
        assert np.mean(predicted == labels[:64]) > 0.9
        assert modes[:3] == ["train", "eval", "infer"]

    def test_it_is_a_legacy_model_too(self, library, trained):
        keras_model_fn, _ = made_of(library)
        model = LegacyModel(keras_model_fn)
        model.load_checkpoint(trained[0].latest_checkpoint())
        model.compile()
        accuracy = model.evaluate(dataset(), steps=10, return_dict=True, verbose=0)["accuracy"]
        expected = trained[0].evaluate(dataset, steps=10)["accuracy"]
        assert accuracy == pytest.approx(float(expected), abs=1e-6)
        model.fit(dataset(), steps_per_epoch=1, verbose=0)
        assert model.legacy_variables["global_step"].numpy() == 61


def test_random_masks_differ_from_step_to_step(model_dir):
    def dropped(features, labels, mode):
        layer = keras.layers.Dropout(0.5, seed=1)
        loss = tf.reduce_mean(layer(tf.ones_like(features), training=True))
        step = tf1.assign_add(tf1.train.get_global_step(), 1)
        return EstimatorSpec(mode, loss=loss, train_op=tf.group(step, *keras_updates(layer)))

    model = LegacyModel(dropped)
    model.compile()
    losses = model.fit(dataset(), epochs=4, steps_per_epoch=1, verbose=0).history["loss"]
    assert len(set(losses)) == 4


def test_a_keras_model_from_outside_is_an_error(model_dir):
    outside = keras.Sequential([keras.Input([64]), keras.layers.Dense(10)])

    def uses_it(features, labels, mode):
        return EstimatorSpec(mode, loss=0.0, train_op=tf.group(*keras_updates(outside)))

    with pytest.raises(ValueError, match="make the Keras model inside of model_fn"):
        Estimator(uses_it, model_dir).train(dataset, steps=1)


def keras_network(library=keras, names=("hidden", "bn", "logits")):
    layers = library.layers
    return library.Sequential(
        [
            library.Input([64]) if library is keras else layers.InputLayer([64]),
            layers.Dense(32, activation="relu", name=names[0]),
            layers.BatchNormalization(epsilon=1e-3, name=names[1]),
            layers.Dense(10, name=names[2]),
        ]
    )


@pytest.fixture(scope="module")
def legacy(tmp_path_factory):
    """A model that was trained a little, and the folder of its checkpoint."""
    model = LegacyModel(model_fn)
    model.compile()
    model.fit(dataset(), steps_per_epoch=5, verbose=0)
    folder = str(tmp_path_factory.mktemp("legacy"))
    model.save_checkpoint(folder)
    return model, folder


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras3", "tf_keras"])
@pytest.mark.parametrize("source", [0, 1], ids=["model", "checkpoint"])
def test_keras_layers_with_the_weights_give_the_same_predictions(legacy, library, source):
    target = keras_network(library)
    pairs = transfer_weights(legacy[source], target)
    assert dict(pairs)["hidden/kernel"].endswith("hidden/kernel")
    assert len(pairs) == len(target.weights)
    images = digits()[0][:50]
    expected = legacy[0].predict(images, verbose=0)["p"]
    found = tf.nn.softmax(target(images, training=False)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_layers_of_other_names_are_named(legacy):
    target = keras_network(names=("first", "norm", "last"))
    scopes = {"first": "hidden", "norm": "bn", "last": "logits"}
    pairs = dict(transfer_weights(legacy[1], target, scopes))
    assert pairs["bn/moving_mean"].endswith("norm/moving_mean")


def checkpoint_of(folder, values):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, value in values.items():
            tf.compat.v1.get_variable(name, initializer=np.asarray(value, np.float32))
        session.run(tf.compat.v1.global_variables_initializer())
        return tf.compat.v1.train.Saver().save(session, str(folder / "model.ckpt"))


def test_a_table_of_get_variable_is_the_weight_of_an_embedding(tmp_path):
    table = np.arange(6.0).reshape(3, 2)
    source = checkpoint_of(tmp_path, {"words": table, "words/Adam": table * 0})
    layer = keras.layers.Embedding(3, 2, name="words")
    layer.build()
    assert [pair.legacy for pair in transfer_weights(source, layer)] == ["words"]
    np.testing.assert_array_equal(layer.get_weights()[0], table)


def test_weights_of_other_names_in_a_checkpoint_are_paired_by_shape_or_refused(tmp_path):
    values = {"first/biases": np.ones(2), "first/weights": np.ones([3, 2])}
    values |= {"norm/offset": np.zeros(2), "norm/scale": np.ones(2)}
    source = checkpoint_of(tmp_path, values)
    dense, norm = keras.layers.Dense(2, name="first"), keras.layers.LayerNormalization(name="norm")
    dense.build([None, 3])
    norm.build([None, 2])
    assert [p.legacy for p in transfer_weights(source, dense)] == ["first/weights", "first/biases"]
    with pytest.raises(ValueError, match="pair variable with variable by `e2s checkpoint convert"):
        transfer_weights(source, norm)  # which is gamma cannot be told


def test_parts_of_a_layer_and_weights_in_order():
    values = {f"att/{part}/kernel": np.ones([4, 2, 2]) for part in ("query", "key", "value")}
    values |= {"att/attention_output/kernel": np.ones([2, 2, 4]), "old/w": np.ones([3, 5])}
    variables = {name: tf.Variable(value) for name, value in values.items()}
    source = type("Source", (), {"legacy_variables": variables})
    attention = keras.layers.MultiHeadAttention(2, 2, use_bias=False, name="att")
    attention.build([None, 3, 4], [None, 3, 4])
    assert len(transfer_weights(source, attention)) == 4
    dense = keras.layers.Dense(5, use_bias=False)
    dense.build([None, 3])
    assert transfer_weights(source, dense, {dense.name: "old"})[0].legacy == "old/w"


def test_nothing_is_changed_unless_all_fits(legacy):
    target = keras_network(names=("hidden", "bn", "other"))
    before = [weight.numpy() for weight in target.weights]
    with pytest.raises(CheckpointError, match="scope 'other' has nothing"):
        transfer_weights(legacy[0], target)
    for weight, value in zip(target.weights, before):
        np.testing.assert_array_equal(weight.numpy(), value)
