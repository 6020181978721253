"""A ranker with large embedding tables and a small tower: for a v1 graph, TF2 and Keras."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

CLASSES = 10
ROWS, DIMENSIONS = 100_000, 32
HISTORY, UNITS = 20, 64


def data(examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns int32 ids [examples, 2 + HISTORY] (user, item, earlier items), int32 labels."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, ROWS, (examples, 2 + HISTORY)).astype(np.int32)
    return ids, rng.integers(0, CLASSES, examples).astype(np.int32)


def _tower(ids: Any, users: Any, items: Any, dense: Any) -> Any:
    looked_up = [
        tf.nn.embedding_lookup(users, ids[:, 0]),
        tf.nn.embedding_lookup(items, ids[:, 1]),
        tf.reduce_mean(tf.nn.embedding_lookup(items, ids[:, 2:]), 1),
    ]
    hidden = tf.nn.relu(dense(tf.concat(looked_up, -1), UNITS, "hidden"))
    return dense(hidden, CLASSES, "logits")


def logits(ids: Any, training: bool, dense: Any) -> Any:
    """The net in a v1 graph; `dense(inputs, units, name)` is a layer."""
    del training
    normal = tf.truncated_normal_initializer(stddev=0.05)
    tables = [
        tf.get_variable(n, [ROWS, DIMENSIONS], initializer=normal) for n in ("users", "items")
    ]
    return _tower(ids, *tables, dense)


class Net:
    """The net for the hand-written loop; `layer(inputs, units)` makes a dense layer."""

    def __init__(self, layer: Any) -> None:
        import tensorflow as tf2

        normal = tf2.initializers.TruncatedNormal(stddev=0.05)
        self.tables = [tf2.Variable(normal([ROWS, DIMENSIONS])) for _ in range(2)]
        self.layers = {"hidden": layer(3 * DIMENSIONS, UNITS), "logits": layer(UNITS, CLASSES)}
        self.variables = [
            *self.tables,
            *(v for of_one in self.layers.values() for v in (of_one.kernel, of_one.bias)),
        ]

    def __call__(self, ids: Any, training: bool) -> Any:
        del training
        return _tower(ids, *self.tables, lambda inputs, units, name: self.layers[name](inputs))


def keras_net() -> Any:
    """The net for `fit`."""
    import keras

    layers = keras.layers
    ids = keras.Input([2 + HISTORY], dtype="int32")
    users, items = (layers.Embedding(ROWS, DIMENSIONS) for _ in range(2))
    looked_up = [
        users(ids[:, 0]),
        items(ids[:, 1]),
        layers.GlobalAveragePooling1D()(items(ids[:, 2:])),
    ]
    hidden = layers.Dense(UNITS, "relu")(layers.Concatenate()(looked_up))
    return keras.Model(ids, layers.Dense(CLASSES)(hidden))
