"""Layers that the models of the project share."""
import tensorflow as tf


def dense_block(net, units, training, name):
    """A dense layer with batch norm."""
    with tf.variable_scope(name):
        net = tf.layers.dense(net, units, use_bias=False, name="dense",
                              kernel_regularizer=tf.contrib.layers.l2_regularizer(1e-4))
        net = tf.layers.batch_normalization(net, training=training, name="norm")
        return tf.nn.relu(net)


def scaled(net, low, high):
    """Numbers between `low` and `high`, as those between 0 and 1."""
    return (net - low) / (high - low)
