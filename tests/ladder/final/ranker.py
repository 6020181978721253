"""Ranks items for a visitor: one table for the items that he saw and the item that is offered."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "ranker_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")

NUM_ITEMS = 60
HISTORY = 5


def offers(count, seed):
    rng = np.random.RandomState(seed)
    history = rng.randint(0, NUM_ITEMS, [count, HISTORY]).astype(np.int32)
    item = rng.randint(0, NUM_ITEMS, [count]).astype(np.int32)
    clicked = (np.abs(history % 6 - item[:, None] % 6) < 2).sum(1) > 2
    # Offers that nobody looked at have no weight.
    weight = np.where(rng.uniform(size=count) < 0.2, 0, np.where(clicked, 1.5, 1))
    features = {"history": history, "item": item, "weight": weight.astype(np.float32)}
    return features, clicked.astype(np.float32)


def train_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(offers(600, 1))
    return data.repeat().batch(params["batch_size"])


def eval_input_fn(params):
    return tf.data.Dataset.from_tensor_slices(offers(150, 2)).batch(params["batch_size"])


class Embed(keras.layers.Layer):
    """The vectors of items; all items are in one table."""

    def __init__(self, size, name=None):
        super().__init__(name=name)
        self.table = keras.layers.Embedding(
            NUM_ITEMS,
            size,
            embeddings_initializer=keras.initializers.RandomUniform(
                minval=-0.1, maxval=0.1
            ),
            name="table",
        )

    def call(self, items):
        return self.table(items)


class Tower(keras.layers.Layer):
    """Dense layers, one on the other."""

    def __init__(self, layers, name=None):
        super().__init__(name=name)
        self.dense_layers = [
            keras.layers.Dense(units, activation="relu", name="dense_{}".format(i))
            for i, units in enumerate(layers)
        ]

    def call(self, inputs):
        for dense in self.dense_layers:
            inputs = dense(inputs)
        return inputs


def weighted_mean(losses, weights):
    """The mean over the losses whose weight is not 0."""
    weights = keras.ops.cast(weights, losses.dtype)
    weights = keras.ops.broadcast_to(weights, keras.ops.shape(losses))
    present = keras.ops.cast(weights != 0, losses.dtype)
    total = keras.ops.sum(losses * weights)
    return keras.ops.divide_no_nan(total, keras.ops.sum(present))


class SummedAdam(keras.optimizers.Adam):
    """Sums the gradients of an id that stands twice in a batch."""

    def apply(self, grads, trainable_variables=None):
        # A sum is dense.
        grads = [None if grad is None else keras.ops.add(grad, 0.0) for grad in grads]
        super().apply(grads, trainable_variables)


class RankerModel(keras.Model):
    """The model of `model_fn`."""

    def __init__(self, params):
        super().__init__()
        self.items = Embed(params["size"], name="items")
        self.visitor = Tower(params["layers"], name="visitor")
        self.item = Tower(params["layers"], name="item")
        self.bias = self.add_weight(
            shape=[], initializer=keras.initializers.Zeros(), name="bias"
        )
        self.accuracy_metric = keras.metrics.Mean(name="accuracy")
        self.auc_metric = keras.metrics.AUC(name="auc")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        visitor = keras.ops.mean(self.items(features["history"]), axis=1)
        visitor = self.visitor(visitor)
        item = self.item(self.items(features["item"]))
        scores = keras.ops.sum(visitor * item, axis=1) + self.bias
        return {"scores": scores}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        features, labels, scores = x, y, y_pred["scores"]
        weights = features["weight"]
        loss = weighted_mean(
            keras.ops.binary_crossentropy(labels, scores, from_logits=True), weights
        )
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        features, labels, scores = x, y, y_pred["scores"]
        weights = features["weight"]
        is_right = keras.ops.equal(labels > 0.5, scores > 0)
        self.accuracy_metric.update_state(
            keras.ops.cast(is_right, "float32"), sample_weight=weights
        )
        self.auc_metric.update_state(
            labels, keras.ops.sigmoid(scores), sample_weight=weights
        )
        return {
            "loss": self.mean_loss.result(),
            "accuracy": self.accuracy_metric.result(),
            "auc": self.auc_metric.result(),
        }


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    rate = keras.optimizers.schedules.ExponentialDecay(params["rate"], 20, 0.9)
    return SummedAdam(learning_rate=rate, epsilon=1e-8)


def train(model, data, max_steps, folder, callbacks=()):
    """Trains up to `max_steps`, from the folder's weights if any."""
    path = os.path.join(folder, "model.weights.h5")
    features, _ = next(iter(data))
    model(features)  # makes the variables
    model.optimizer.build(model.trainable_variables)
    if os.path.exists(path):
        model.load_weights(path)
    steps = max_steps - int(model.optimizer.iterations)
    if steps <= 0:
        return
    os.makedirs(folder, exist_ok=True)
    callbacks = [
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=1000),
        keras.callbacks.TensorBoard(folder, update_freq=100),
        *callbacks,
    ]
    model.fit(data, steps_per_epoch=steps, callbacks=callbacks, verbose=2)
    model.save_weights(path)


def main(_):
    params = {"batch_size": 30, "size": 8, "layers": [16, 8], "rate": 0.02}
    model = RankerModel(params)
    model.compile(make_optimizer(params))
    train(model, train_input_fn(params), FLAGS.train_steps, FLAGS.model_dir)
    # An Estimator also evaluates at its checkpoints: validation_data of fit does.
    model.evaluate(eval_input_fn(params), verbose=2, return_dict=True)


if __name__ == "__main__":
    app.run(main)
