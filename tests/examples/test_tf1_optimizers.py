"""The optimizers of examples/tf1_optimizers.py in Keras's own training; their numbers are those of
tests/tools/migrate/test_replacements.py."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from examples import tf1_optimizers

MADE = {
    "AdamW": lambda: tf1_optimizers.AdamW(0.01, 0.1),
    "MomentumW": lambda: tf1_optimizers.MomentumW(0.01, 0.1, 0.9),
    "Momentum": lambda: tf1_optimizers.Momentum(0.1, 0.9, nesterov=True),
    "LARS": lambda: tf1_optimizers.LARS(0.1),
    "ProximalAdagrad": lambda: tf1_optimizers.ProximalAdagrad(0.1, l1=0.25),
    "Ftrl": lambda: tf1_optimizers.Ftrl(0.1, l2_shrinkage=0.5),
    "Adam": lambda: tf1_optimizers.Adam(
        keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5), beta_1=0.75
    ),
}


def trained(model):
    ids = np.array([[1, 1], [0, 1], [3, 3], [1, 0]])
    model.fit(ids, np.array([[5.0], [3.0], [2.0], [9.0]]), batch_size=2, shuffle=False, verbose=0)
    return model.layers[0].embeddings.numpy()


@pytest.mark.parametrize("name", MADE)
def test_optimizer_trains_an_embedding_and_goes_on_from_a_saved_model(name, tmp_path):
    table = keras.layers.Embedding(5, 2, embeddings_initializer="ones")
    model = keras.Sequential([table, keras.layers.GlobalAveragePooling1D()])
    model.compile(MADE[name](), "mse")
    first = trained(model)
    assert (first[4] == 1).all()  # nobody looked it up
    assert (first[[0, 1, 3]] != 1).all()

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(
        tmp_path / "model.keras", {name: getattr(tf1_optimizers, name)}
    )
    np.testing.assert_array_equal(trained(loaded), trained(model))


def test_optimizer_trains_on_two_replicas(tmp_path):
    devices = tf.config.list_logical_devices("CPU")[:2]
    strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
    with strategy.scope():
        table = keras.layers.Embedding(5, 2, embeddings_initializer="ones")
        model = keras.Sequential([table, keras.layers.GlobalAveragePooling1D()])
        model.compile(tf1_optimizers.Momentum(0.1, 0.9), "mse")
    assert (trained(model)[[0, 1, 3]] != 1).all()
