"""Layers that the models of the project share."""
import keras


class DenseBlock(keras.layers.Layer):
    """A dense layer with batch norm."""

    def __init__(self, units, name=None):
        super().__init__(name=name)
        self.dense = keras.layers.Dense(
            units,
            use_bias=False,
            kernel_regularizer=keras.regularizers.L2(1e-4 / 2),
            name="dense",
        )
        self.norm = keras.layers.BatchNormalization(name="norm")

    def call(self, net, training=False):
        net = self.dense(net)
        net = self.norm(net, training=training)
        return keras.ops.relu(net)


def scaled(net, low, high):
    """Numbers between `low` and `high`, as those between 0 and 1."""
    return (net - low) / (high - low)
