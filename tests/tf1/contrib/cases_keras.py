"""Cases for `tf.layers` and `tf.keras.layers`: their variables, and what they make of an input."""

from parity import values


def _input(tf, *shape):
    return tf.constant(values(shape, "input"), tf.float32)


def _of(make, *shape):
    """A case for a layer by itself, and in a variable scope."""

    def case(tf):
        outputs = [make(tf.keras.layers)(_input(tf, *shape))]
        with tf.variable_scope("scope"):
            outputs.append(make(tf.keras.layers)(_input(tf, *shape)))
        return outputs

    return case


VECTORS, SEQUENCES, IMAGES, FILMS = (2, 4), (2, 5, 4), (2, 6, 6, 4), (2, 3, 6, 6, 4)
LAYERS = {
    "dense": _of(lambda layers: layers.Dense(3), *VECTORS),
    "lstm": _of(lambda layers: layers.LSTM(3), *SEQUENCES),
    "gru": _of(lambda layers: layers.GRU(3), *SEQUENCES),
    "gru_reset_after": _of(lambda layers: layers.GRU(3, reset_after=True), *SEQUENCES),
    "simple_rnn": _of(lambda layers: layers.SimpleRNN(3), *SEQUENCES),
    "rnn": _of(lambda layers: layers.RNN(layers.LSTMCell(3), return_sequences=True), *SEQUENCES),
    "rnn_of_cells": _of(
        lambda layers: layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)]), *SEQUENCES
    ),
    "stacked_cells": _of(
        lambda layers: layers.RNN(layers.StackedRNNCells([layers.LSTMCell(3), layers.LSTMCell(3)])),
        *SEQUENCES,
    ),
    "bidirectional": _of(lambda layers: layers.Bidirectional(layers.LSTM(3)), *SEQUENCES),
    "time_distributed": _of(lambda layers: layers.TimeDistributed(layers.Dense(3)), *SEQUENCES),
    "conv_lstm": _of(lambda layers: layers.ConvLSTM2D(3, 3), *FILMS),
    "batch_normalization": _of(lambda layers: layers.BatchNormalization(), *IMAGES),
    "layer_normalization": _of(lambda layers: layers.LayerNormalization(), *VECTORS),
    "conv_1d": _of(lambda layers: layers.Conv1D(3, 3), *SEQUENCES),
    "conv_2d": _of(lambda layers: layers.Conv2D(3, 3), *IMAGES),
    "conv_2d_transpose": _of(lambda layers: layers.Conv2DTranspose(3, 3), *IMAGES),
    "depthwise_conv": _of(lambda layers: layers.DepthwiseConv2D(3), *IMAGES),
    "separable_conv": _of(lambda layers: layers.SeparableConv2D(3, 3), *IMAGES),
    "locally_connected": _of(lambda layers: layers.LocallyConnected1D(3, 2), *SEQUENCES),
    "prelu": _of(lambda layers: layers.PReLU(), *VECTORS),
}
globals().update(LAYERS)


def embedding(tf):
    return tf.keras.layers.Embedding(5, 3)(tf.constant([[0, 4], [2, 2]]))


def attention(tf):
    queries = _input(tf, *SEQUENCES)
    return tf.keras.layers.Attention(use_scale=True)([queries, queries])


def sequential(tf):
    layers = tf.keras.layers
    both = layers.Bidirectional(layers.LSTM(3, return_sequences=True))
    model = tf.keras.Sequential([both, layers.GRU(3), layers.Dense(1)])
    return model(_input(tf, *SEQUENCES))


def functional(tf):
    inputs = tf.keras.Input(SEQUENCES[1:])
    outputs = tf.keras.layers.Dense(2)(tf.keras.layers.LSTM(3)(inputs))
    return tf.keras.Model(inputs, outputs)(_input(tf, *SEQUENCES))


def subclassed(tf):
    class Net(tf.keras.Model):
        def __init__(self):
            super(Net, self).__init__()  # noqa: UP008
            self.lstm = tf.keras.layers.LSTM(3)
            self.out = tf.keras.layers.Dense(2, name="logits")

        def call(self, inputs):
            return self.out(self.lstm(inputs))

    return Net()(_input(tf, *SEQUENCES))


def called_twice(tf):
    lstm = tf.keras.layers.LSTM(3)
    return [lstm(_input(tf, *SEQUENCES)), lstm(2.0 * _input(tf, *SEQUENCES))]


def initializer_of_the_scope(tf):
    """Layers of `tf.layers` that name none have that of the variable scope; Keras's have not."""
    with tf.variable_scope("scope", initializer=tf.constant_initializer(3.0)):
        tf.layers.dense(_input(tf, *VECTORS), 2)
        tf.layers.conv2d(_input(tf, *IMAGES), 2, 3)
        tf.layers.separable_conv2d(_input(tf, *IMAGES), 2, 3)
        cell = tf.nn.rnn_cell.BasicLSTMCell(3)
        tf.nn.dynamic_rnn(cell, _input(tf, *SEQUENCES), dtype=tf.float32)
    return [variable.initial_value for variable in tf.global_variables()]
