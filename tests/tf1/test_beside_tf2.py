"""TF2 and Keras 3 code is not touched by legacy code in its process."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import legacy

PROJECT = Path(__file__).parents[1] / "programs" / "legacy_project"


@pytest.fixture
def helper(monkeypatch):
    """A legacy module, imported as one."""
    monkeypatch.syspath_prepend(PROJECT)
    tensor_shape = importlib.import_module("tensorflow.python.framework.tensor_shape")
    override = "_TENSORSHAPE_V2_OVERRIDE"
    monkeypatch.setattr(tensor_shape, override, getattr(tensor_shape, override))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    legacy._start.cache_clear()
    yield legacy.import_module("helper")
    sys.modules.pop("helper")


def test_keras_3_trains_while_legacy_code_sees_dimensions(helper):
    model = keras.Sequential([keras.layers.Dense(2), keras.layers.BatchNormalization()])
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(np.ones([8, 3]), np.ones([8, 2]), batch_size=4, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    # The very same tensor, asked from here and from there.
    shape = model(np.ones([8, 3])).shape
    assert helper.last_dimension(tf.ones([8, 2])) == 2  # reads `.value` of each dimension
    assert [type(dimension) for dimension in shape] == [int, int]
    assert tf.executing_eagerly()


def test_tensorflow_itself_is_as_it_was(helper):
    assert helper.tf.__version__ == "1.15.5"
    assert sys.modules["tensorflow"] is tf
    assert tf.__version__ != "1.15.5"
    assert not hasattr(tf, "contrib")
    assert isinstance(tf.TensorShape([1])[0], int)
    assert helper.tf.float32 is tf.float32
