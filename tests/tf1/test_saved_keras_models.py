"""Keras models that TF 1.15's code, which this file is, saves and loads."""

from __future__ import annotations

import numpy as np
import pytest

import estimator2strategy.tf1 as tf


def _trained():
    model = tf.keras.models.Sequential([tf.keras.layers.Dense(3, input_dim=2)])
    model.compile(loss="mse", optimizer="adam")
    model.train_on_batch(np.ones((2, 2)), np.ones((2, 3)))
    return model


@pytest.mark.parametrize("name", ["actor", "actor.model", "actor.keras"])
@pytest.mark.parametrize("save", ["method", "function"])
def test_the_default_format_is_hdf5_whatever_a_file_is_called(tmp_path, name, save):
    model, path = _trained(), str(tmp_path / name)
    if save == "method":
        model.save(path)
    else:
        tf.keras.models.save_model(model, path)
    with open(path, "rb") as file:
        assert file.read(4) == b"\x89HDF"
    loaded = tf.keras.models.load_model(path)
    np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])


def test_a_model_may_be_saved_as_a_saved_model(tmp_path):
    model, path = _trained(), str(tmp_path / "actor")
    model.save(path, save_format="tf")
    loaded = tf.keras.models.load_model(path)
    np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])
