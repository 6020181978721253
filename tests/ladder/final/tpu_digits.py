"""Digits on a TPU, or on this machine: a TPUEstimator with a host_call and metrics for the host."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "tpu_digits_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("batch_size", 32, "Examples in a batch, of all cores.")
flags.DEFINE_float("learning_rate", 0.1, "First learning rate.")
flags.DEFINE_bool("use_tpu", False, "True for a TPU, False for this machine.")
flags.DEFINE_string("tpu", None, "Name or address of the TPU.")


def make_digits(count, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 5, [count]).astype(np.int32)
    images = rng.uniform(0, 0.6, [count, 10, 10]).astype(np.float32)
    for image, label in zip(images, labels):
        image[2 * label : 2 * label + 2] += 0.4
    return images, labels


def train_input_fn(params):
    """Batches of params["batch_size"], which TPUEstimator sets."""
    data = tf.data.Dataset.from_tensor_slices(make_digits(600, 1))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(make_digits(160, 2))
    return data.batch(params["batch_size"], drop_remainder=True)


class TpuDigitsModel(keras.Model):
    """A convolution and two dense layers."""

    def __init__(self, params):
        super().__init__()
        self.conv = keras.layers.Conv2D(
            params["filters"], 3, activation="relu", name="conv"
        )
        self.flatten = keras.layers.Flatten()
        self.hidden = keras.layers.Dense(
            16,
            activation="relu",
            kernel_regularizer=keras.regularizers.L2(1e-3 / 2),
            name="hidden",
        )
        self.logits = keras.layers.Dense(5, name="logits")
        self.accuracy_metric = keras.metrics.Accuracy(name="accuracy")
        self.mean_class_metric = keras.metrics.Mean(name="mean_class")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        net = keras.ops.expand_dims(features, axis=3)
        net = self.conv(net)
        net = self.flatten(net)
        net = self.hidden(net)
        logits = self.logits(net)
        predictions = {
            "class": keras.ops.cast(keras.ops.argmax(logits, axis=1), "int64"),
            "probabilities": keras.ops.softmax(logits),
        }
        return {**predictions, "logits": logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, logits = y, y_pred["logits"]
        cores = tf.distribute.get_strategy().num_replicas_in_sync
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(
            labels, logits
        )
        loss = cross_entropy + sum(self.losses) / cores
        if training and keras.backend.backend() == "tensorflow":
            # For TensorBoard.
            tf.summary.scalar("cross_entropy", cross_entropy)
            tf.summary.scalar("learning_rate", self.optimizer.learning_rate)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss * cores)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, logits = y, y_pred["logits"]
        predicted = keras.ops.cast(keras.ops.argmax(logits, axis=1), "int64")
        self.accuracy_metric.update_state(labels, predicted)
        self.mean_class_metric.update_state(predicted)
        return {
            "loss": self.mean_loss.result(),
            "accuracy": self.accuracy_metric.result(),
            "mean_class": self.mean_class_metric.result(),
        }


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    learning_rate = keras.optimizers.schedules.ExponentialDecay(
        FLAGS.learning_rate, 20, 0.8
    )
    return keras.optimizers.SGD(learning_rate=learning_rate)


def make_strategy(use_tpu, resolver=None):
    """A strategy for the cores of a TPU, or for this machine."""
    if not use_tpu:
        return tf.distribute.get_strategy()
    resolver = resolver or tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


def train(model, data, max_steps, folder, callbacks=()):
    """Trains up to `max_steps`, from the folder's weights if any."""
    path = os.path.join(folder, "model.weights.h5")
    features, _ = next(iter(data))
    with model.distribute_strategy.scope():
        model(features)  # makes the variables
        model.optimizer.build(model.trainable_variables)
    if os.path.exists(path):
        model.load_weights(path)
    steps = max_steps - int(model.optimizer.iterations.numpy())
    if steps <= 0:
        return
    os.makedirs(folder, exist_ok=True)
    callbacks = [
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=25),
        keras.callbacks.TensorBoard(folder, update_freq=100),
        *callbacks,
    ]
    model.fit(data, steps_per_epoch=steps, callbacks=callbacks, verbose=2)
    model.save_weights(path)


def main(_):
    resolver = None
    if FLAGS.use_tpu:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu)
    params = {"filters": 4}
    with make_strategy(FLAGS.use_tpu, resolver).scope():
        model = TpuDigitsModel(params)
        model.compile(make_optimizer(params))
    train(
        model,
        train_input_fn({**params, "batch_size": FLAGS.batch_size}),
        FLAGS.train_steps,
        FLAGS.model_dir,
    )
    print(
        model.evaluate(
            eval_input_fn({**params, "batch_size": FLAGS.batch_size}),
            steps=5,
            verbose=0,
            return_dict=True,
        )
    )


if __name__ == "__main__":
    app.run(main)
