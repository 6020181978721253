"""What the check advises for TensorFlow 2 is there in TensorFlow 2."""

from __future__ import annotations

import re

import pytest
import tensorflow as tf

from estimator2strategy.engine.names import name_table, tables

ADVICE = {
    name: tables.home(name, row.advice)
    for path in ("tf1/facade/symbols.csv", "tf1/contrib/symbols.csv")
    for name, row in name_table.read(path).symbols.items()
    if row.status != "refused"
}


def test_no_advice_names_what_tensorflow_2_has_not():
    def is_there(name):
        found = tf
        try:
            for part in name.split(".")[1:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True

    named = {name for advice in ADVICE.values() for name in re.findall(r"\btf(?:\.\w+)+", advice)}
    assert len(named) > 100
    assert sorted(name for name in named if not is_there(name)) == []


@pytest.mark.parametrize(
    ("name", "advice", "home"),
    [
        ("tf.estimator.ModeKeys", "", "the argument `training` of a layer's call"),
        ("tf.contrib.learn.RunConfig", "tf.estimator.RunConfig", "the callbacks ModelCheckpoint"),
        ("tf.contrib.estimator.X", "tf.estimator.DNNClassifier with columns", "tf.keras, with"),
        (
            "tf.python.estimator.model_fn.ModeKeys.EVAL",
            "a tf.distribute strategy and a loop",
            "the a",
        ),
        ("tf.contrib.slim.get_model_variables", "tf.keras.layers", "tf.Variable; the `variables`"),
        ("tf.contrib.slim.max_pool2d", "tf.keras.layers", "tf.keras.layers.MaxPooling2D"),
        ("tf.contrib.framework.nest.flatten", "tf.Module, tf.train.Checkpoint", "tf.nest.flatten"),
        ("tf.contrib.crf.crf_decode", "tensorflow_addons.text.crf", "the functions as they are"),
        ("tf.keras.losses.mean_squared_error", "tf.keras", "tf.keras.losses.MeanSquaredError"),
        ("tf.app.run", "absl.app.run", "absl.app.run"),
        ("tf.layers.dense", "tf.keras.layers.Dense", "tf.keras.layers.Dense"),
    ],
)
def test_advice_about_a_name_that_is_gone_is_followed(name, advice, home):
    assert tables.home(name, advice).startswith(home)
