"""Attributes that objects of TensorFlow 2 do not have, each held against TensorFlow itself."""

from __future__ import annotations

import functools

import keras
import pytest
import tensorflow as tf

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.rules.tensorflow import changed_calls
from estimator2strategy.tools.check.settings import Settings, Target

TF = "import tensorflow as tf\n\n"


def errors(text, target=Target.TF2):
    findings = check_text(TF + text, Settings(target=target)).findings
    wanted = ("E2S103", "E2S108", "E2S110")
    return [
        f"{f.rule} {f.line - 2}"
        for f in findings
        if f.rule in wanted and f.severity.name == "ERROR"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x = dataset.make_one_shot_iterator().get_next()\n",
        "x = load(path).make_initializable_iterator()\n",
        "data = tf.data.Dataset.range(3)\ndata = data.map(f).batch(2)\nx = data.output_shapes\n",
        "x = tf.keras.layers.Dense(3).apply(features)\n",
        "layer = tf.layers.Dense(3)\nx = layer.apply(features)\n",
        "model = tf.keras.Sequential()\nmodel.fit_generator(batches)\n",
        "table = tf.lookup.StaticHashTable(start, 0)\nsession.run(table.init)\n",
        "n = x.shape[0]\nm = n.value\n",
        "shape = x.get_shape()\nm = shape[1].value\n",
        "dims = [d.value for d in x.get_shape()]\n",
        "optimizer = tf.keras.optimizers.Adam(lr=0.1)\n",
        "x = tf.keras.Input(batch_input_shape=[8, 2])\n",
    ],
)
def test_what_tensorflow_2_does_not_have_is_an_error_there_alone(text):
    lines = len(text.splitlines())
    assert [found.partition(" ")[2] for found in errors(text)] == [str(lines)]
    assert errors(text, Target.FACADE) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = tf.compat.v1.data.make_one_shot_iterator(dataset)\n",
        "import tensorflow.compat.v1 as tf1\nx = dataset.make_one_shot_iterator()\n",
        "x = frame.apply(f)\n",
        "x = dataset.apply(tf.data.experimental.ignore_errors())\n",
        "x = output_shapes(dataset).output_shapes\n",
        "x = parameter.value\n",
        "def f(x: numbers.value, y: layer.updates) -> dataset.output_shapes:\n    return x.shape\n",
        "n = x.shape.dims[0].value\n",
        "n = settings[0]\nm = n.value\n",
        "optimizer = MyAdam(lr=0.1)\n",
        "x = tf.Variable(1.0, collections=[])\n",
    ],
)
def test_what_may_well_be_there_is_no_finding(text):
    assert errors(text) == []


def test_tensorflow_2_has_none_of_these_attributes():
    dataset, table = tf.data.Dataset.range(3), tf.lookup.StaticHashTable
    assert not any(hasattr(dataset, name) for name in changed_calls._DATASET)
    assert not any(hasattr(dataset, name) for name in changed_calls._OF_DATASETS)
    assert not any(hasattr(table, name) for name in changed_calls._OF_TABLES)


def test_keras_3_has_none_of_these_attributes():
    assert not any(hasattr(keras.Sequential, name) for name in changed_calls._OF_MODELS)
    assert not any(hasattr(keras.layers.Dense, name) for name in changed_calls._OF_LAYERS)


_NEEDED: dict[str, list[int]] = {"Dense": [1], "Conv2D": [1, 1], "GRU": [1], "LSTM": [1]}


@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, a) for name, gone in changed_calls._KERAS.items() for a in gone]
    + [("tf.keras.optimizers.Adam", "lr"), ("tf.keras.optimizers.SGD", "lr")],
)
def test_keras_3_refuses_these_arguments(name, argument):
    made = functools.reduce(getattr, name.split(".")[2:], keras)
    with pytest.raises((TypeError, ValueError)):
        made(*_NEEDED.get(name.rpartition(".")[2], []), **{argument: [1]})
