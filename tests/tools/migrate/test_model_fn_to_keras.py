"""model-fn-to-keras: a program that has no place in a Keras model stays, with a reason."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.migrate.model_class import wrapping
from estimator2strategy.tools.migrate.model_class.wrapping import wrapped
from tests.tools.migrate.test_estimator_to_fit import migrated

PROGRAM = """\
from estimator2strategy import KerasLoop
import estimator2strategy.tf1 as tf


def model_fn(features, labels, mode, params):
    y = tf.layers.dense(features, 1, name="y")
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)
    optimizer.iterations = tf.train.get_or_create_global_step()
    train_op = optimizer.apply_gradients(zip(tf.gradients(loss, tf.trainable_variables()), x))
    return tf.estimator.EstimatorSpec(mode, y, loss, train_op)


def main(input_fn):
    loop = KerasLoop(model_fn, "model", params={"rate": 0.1})
    loop.evaluate(lambda: input_fn())
"""
# What the program has, and what instead -> a word of why it stays.
STAYS = {
    ("(labels, y)", "(labels, y, reduction=r)"): "what reduction does",
    ("loss, train_op)", "loss, train_op, scaffold=s)"): "has nothing for scaffold of a spec",
    ("tf.losses.mean_squared_error", "tf.losses.hinge_loss"): "Keras has nothing for",
    ("loop.evaluate(lambda: input_fn())", "other(loop)"): "in a way that a model has not",
    (
        'y = tf.layers.dense(features, 1, name="y")',
        "y = tf.layers.batch_normalization(features, renorm=True)",
    ): "no layer of Keras 3 has renorm",
    (
        "optimizer.iterations = tf.train.get_or_create_global_step()",
        "optimizer.gradient_aggregator = sum_over_cores",
    ): "it is no part of an optimizer",
    (
        '    y = tf.layers.dense(features, 1, name="y")',
        "    y = [tf.layers.dense(features, 1) for _ in range(2)][0]",
    ): "a loop of statements",
    (
        '    y = tf.layers.dense(features, 1, name="y")',
        "    y = tf.layers.dense(features, features.shape[1])",
    ): "a layer is made before features is known",
    (
        "def main(input_fn):",
        "def other(x):\n    return tf.layers.dense(x, 1)\n\n\ndef main(input_fn):",
    ): "bring this layer into the model_fn",
    ('"model", params', '"model", config=made(), params'): "make its config by one call",
    (
        "loss = tf.losses.mean_squared_error(labels, y)",
        "loss = tf.reduce_mean(tf.square(labels - y))",
        "params={",
        "use_tpu=True, params={",
    ): "take the loss from tf.losses",
    (
        '    y = tf.layers.dense(features, 1, name="y")',
        "    cell = tf.nn.rnn_cell.LSTMCell(num_units=3, use_peepholes=True)\n"
        "    _, state = tf.nn.dynamic_rnn(cell, features, dtype=tf.float32)\n"
        "    y = state.h",
    ): "write the use_peepholes of this cell",
    (
        '    y = tf.layers.dense(features, 1, name="y")',
        "    age = tf.feature_column.numeric_column('age', normalizer_fn=abs)\n"
        "    y = tf.feature_column.input_layer(features, [age])",
    ): "write what normalizer_fn of this column does",
    (
        '    y = tf.layers.dense(features, 1, name="y")',
        "    age = tf.feature_column.bucketized_column(\n"
        "        tf.feature_column.numeric_column('age'), [1])\n"
        "    y = tf.feature_column.linear_model(\n"
        "        features, [tf.feature_column.crossed_column([age, 'b'], 9)])",
    ): "cross features by their names",
    (
        '    y = tf.layers.dense(features, 1, name="y")',
        "    y = tf.contrib.layers.layer_norm(features)",
    ): "begin_norm_axis=-1",
    (
        '    y = tf.layers.dense(features, 1, name="y")',
        "    with tf.variable_scope('a', initializer=first):\n"
        "        y = tf.layers.dense(features, 1)",
    ): "no options but reuse",
    (
        "    train_op = ",
        "    other = tf.keras.optimizers.SGD(learning_rate=0.1)\n"
        "    first = other.apply_gradients(zip(\n"
        "        tf.gradients(loss, tf.trainable_variables()), tf.trainable_variables()))\n"
        "    with tf.control_dependencies([first]):\n      train_op = ",
    ): "wait for one another",
    (
        "    train_op = ",
        "    other = tf.keras.optimizers.SGD(learning_rate=0.1)\n"
        "    first = other.apply_gradients(zip(\n"
        "        tf.gradients(loss, tf.trainable_variables()), tf.trainable_variables()))\n"
        "    train_op = ",
        "mode, y, loss, train_op)",
        "mode, y, 2 * loss, train_op)",
    ): 'another name than "loss"',
    (
        "    train_op = ",
        "    x = [(g * 2, v) for g, v in zip(tf.gradients(loss, w), w)]\n"
        "    x = [tf.multiply(g, 2) for g in tf.gradients(loss, x)]\n    train_op = ",
    ): "write what is done to gradients",
}


def edited(text, edit):
    """The text with each pattern of an edit replaced by what follows it."""
    for old, new in zip(edit[::2], edit[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("edit", STAYS, ids=lambda edit: edit[1])
def test_a_program_without_a_place_in_a_model_stays_with_the_reason_at_the_line(edit):
    outcome = migrated(edited(PROGRAM, edit), "model-fn-to-keras")
    assert not outcome.counts
    (mark,) = outcome.marks
    assert STAYS[edit] in mark.message


def test_the_program_itself_becomes_a_model():
    outcome = migrated(PROGRAM, "model-fn-to-keras")
    assert outcome.marks == ()
    assert "class KerasModel(keras.Model):" in outcome.text
    assert "model_fn(" not in outcome.text


LAYER = '    y = tf.layers.dense(features, 1, name="y")\n'
# A function that makes layers -> lines that the model has for it.
BECOMES = {
    "    for i, n in enumerate([4, 1]):\n"
    "        features = tf.layers.dense(features, n, name='y_%d' % i)\n"
    "    y = features\n": (
        "        self.y_layers = [\n"
        "            keras.layers.Dense(n, name='y_%d' % i) for i, n in enumerate([4, 1])\n",
        "        for y_layer in self.y_layers:\n            features = y_layer(features)\n",
    ),
    "    for n in [4, 1]:\n"
    "        with tf.variable_scope('a_%d' % n):\n"
    "            features = tf.layers.dense(features, n, name='y') * n\n"
    "    y = features\n": (
        '            keras.layers.Dense(n, name=f"a_{n}_y") for n in [4, 1]\n',
        "        for n, a_y in zip([4, 1], self.a_y_layers):\n",
    ),
    "    if params['deep']:\n        features = tf.layers.dense(features, 3, name='z')\n" + LAYER: (
        "        if params['deep']:\n            self.z = keras.layers.Dense(3, name=\"z\")\n",
        "        if self.params['deep']:\n            features = self.z(features)\n",
    ),
    "    with tf.variable_scope('s', reuse=tf.AUTO_REUSE):\n"
    "        z = tf.layers.dense(features, 3, name='z')\n"
    "        y = z + tf.layers.dense(features, 3, name='z')\n": (
        "        z = self.s_z(features)\n        y = z + self.s_z(features)\n",
    ),
    "    cell = tf.nn.rnn_cell.BasicLSTMCell(3)\n"
    "    _, state = tf.nn.dynamic_rnn(cell, features, dtype=tf.float32)\n"
    "    y = state[1]\n": (
        '        self.rnn = keras.layers.LSTM(3, name="rnn")\n',
        "        state_h = self.rnn(features)\n        y = state_h\n",
    ),
    "    cell = tf.nn.rnn_cell.LSTMCell(3)\n"
    "    y, _ = tf.nn.dynamic_rnn(cell, features, dtype=tf.float32)\n": (
        'keras.layers.LSTM(3, return_sequences=True, name="rnn")\n',
        "        y = self.rnn(features)\n",
    ),
}


@pytest.mark.parametrize("code", BECOMES)
def test_layers_in_blocks_are_made_once_and_called_where_they_were(code):
    outcome = migrated(edited(PROGRAM, (LAYER, code)), "model-fn-to-keras")
    assert outcome.marks == ()
    for lines in BECOMES[code]:
        assert "".join(lines.split()) in "".join(outcome.text.split())  # wherever lines are broken


def test_a_batch_norm_of_images_says_what_its_variance_lacks():
    layer = '    y = tf.layers.dense(features, 1, name="y")\n'
    norm = "    y = tf.layers.batch_normalization(features, name='norm')\n"
    image = "    features = tf.layers.conv2d(features, 4, 3)\n"
    note = "# TF 1's moving variance of images has a factor n / (n - 1).\n"
    outcome = migrated(PROGRAM.replace(layer, image + norm + layer), "model-fn-to-keras")
    assert f"        {note}        self.norm = keras.layers.BatchNorm" in outcome.text
    assert note not in migrated(PROGRAM.replace(layer, norm + layer), "model-fn-to-keras").text


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("x = f(a)", ["x = f(a)"]),
        ("result = function(first, other)", ["result = function(", "    first, other", ")"]),
        ("result = {'a': first, 'b': 2}", ["result = {", "    'a': first,", "    'b': 2,", "}"]),
        (
            "x = [func(a) for a in the_values]",
            ["x = [", "    func(a)", "    for a in the_values", "]"],
        ),
    ],
)
def test_lines_are_broken_as_black_breaks_them(code, lines):
    assert wrapped(code, 24) == lines


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.black]\nline-length = 99\n"),
        ("pyproject.toml", "[tool.ruff]\nline-length = 99\n"),
        ("ruff.toml", "line-length = 99\n"),
        ("setup.cfg", "[flake8]\nmax-line-length = 99\n"),
    ],
)
def test_the_limit_of_lines_is_the_projects(name, text, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    assert wrapping.line_limit_of(tmp_path / "trainer.py") == 99
    (tmp_path / "other" / ".git").mkdir(parents=True)
    assert wrapping.line_limit_of(tmp_path / "other" / "trainer.py") == wrapping.DEFAULT
