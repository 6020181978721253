"""Layers that name no initializer draw their first weights from the graph's seed, as in TF 1.15."""

import keras
import numpy as np
import pytest
import tensorflow
import tf_keras

import estimator2strategy.tf1 as tf
from estimator2strategy.engine.worlds import legacy_world

STEPS = np.ones([2, 3, 4], np.float32)


def fused_cell(steps):
    outputs, _ = tf.contrib.rnn.LSTMBlockFusedCell(3)(steps, dtype=tf.float32)
    return outputs


LAYERS = {
    "tf.layers": lambda steps: tf.layers.dense(steps, 3),
    "tf.nn.rnn_cell": lambda steps: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.LSTMCell(3), steps, dtype=tf.float32
    ),
    "tf.nn.rnn_cell.GRUCell": lambda steps: tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(3), steps, dtype=tf.float32
    ),
    "tf.contrib.rnn": fused_cell,
    "tf.contrib.layers": lambda steps: tf.contrib.layers.fully_connected(steps, 3),
    "tf.keras.layers": lambda steps: tf.keras.layers.Dense(3)(steps),
    "tf.keras.layers.LSTM": lambda steps: tf.keras.layers.LSTM(3)(steps),  # orthogonal
    "tf.keras.layers, by name": lambda steps: tf.keras.layers.Dense(
        3, kernel_initializer="he_normal"
    )(steps),
}


def first_weights(layer, seed):
    with legacy_world(), tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(seed)
        layer(tf.constant(STEPS))
        session.run(tf.global_variables_initializer())
        return np.concatenate([value.ravel() for value in session.run(tf.trainable_variables())])


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_first_weights_are_those_of_the_seed(layer):
    weights = first_weights(layer, 1)
    np.testing.assert_array_equal(weights, first_weights(layer, 1))
    assert not np.array_equal(weights, first_weights(layer, 2))


@pytest.mark.parametrize("library", [tf_keras, keras])
def test_models_of_tf_2_keep_their_initializers(library):
    tf.keras.layers.Dense(1)  # from here on the facade's Keras is there
    dense = library.layers.Dense(3)
    dense.build([None, 2])
    assert type(dense.kernel_initializer) is library.initializers.GlorotUniform

    @tensorflow.function
    def in_a_function():
        return (
            type(library.layers.Dense(3).kernel_initializer) is library.initializers.GlorotUniform
        )

    assert in_a_function()
