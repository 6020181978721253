"""A small Transformer encoder in the way of BERT's: names, init, layer norm, padding masks."""

import math

import estimator2strategy.tf1 as tf


class Config:
    def __init__(self, vocab_size, hidden=32, layers=2, heads=4, length=16):
        self.vocab_size, self.hidden, self.layers = vocab_size, hidden, layers
        self.heads, self.length = heads, length


def initializer():
    return tf.truncated_normal_initializer(stddev=0.1, seed=7)


def dense(inputs, units, name, activation=None):
    return tf.layers.dense(
        inputs, units, activation=activation, name=name, kernel_initializer=initializer()
    )


def layer_norm(inputs, name):
    return tf.contrib.layers.layer_norm(inputs, begin_norm_axis=-1, scope=name)


def attention(inputs, mask, config):
    """Self-attention: [batch, length, hidden], mask [batch, length] -> the same shape."""

    def split(tensor):
        shape = [-1, config.length, config.heads, config.hidden // config.heads]
        return tf.transpose(tf.reshape(tensor, shape), [0, 2, 1, 3])

    query, key, value = (split(dense(inputs, config.hidden, n)) for n in ("query", "key", "value"))
    scores = tf.matmul(query, key, transpose_b=True) / math.sqrt(config.hidden / config.heads)
    scores += (1.0 - mask[:, None, None, :]) * -10000.0
    context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    return dense(tf.reshape(context, [-1, config.length, config.hidden]), config.hidden, "output")


def encoder(ids, config):
    """Token ids [batch, length] -> [batch, length, hidden]."""
    with tf.variable_scope("bert"):
        mask = tf.cast(ids > 0, tf.float32)
        with tf.variable_scope("embeddings"):
            words = tf.get_variable(
                "word_embeddings", [config.vocab_size, config.hidden], initializer=initializer()
            )
            places = tf.get_variable(
                "position_embeddings", [config.length, config.hidden], initializer=initializer()
            )
            net = layer_norm(tf.nn.embedding_lookup(words, ids) + places, "LayerNorm")
        for i in range(config.layers):
            with tf.variable_scope(f"encoder/layer_{i}"):
                with tf.variable_scope("attention"):
                    net = layer_norm(net + attention(net, mask, config), "LayerNorm")
                wide = dense(net, 2 * config.hidden, "intermediate", tf.nn.relu)
                net = layer_norm(net + dense(wide, config.hidden, "output"), "LayerNorm")
    return net
