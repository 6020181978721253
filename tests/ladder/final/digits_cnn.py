"""A convolutional network with batch normalization and dropout."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "digits_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")


def make_images(count, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 4, [count]).astype(np.int32)
    images = rng.uniform(0, 0.5, [count, 8, 8, 1]).astype(np.float32)
    for image, label in zip(images, labels):
        image[label * 2 : label * 2 + 2] += 0.5
    return {"image": images}, labels


def train_input_fn():
    data = tf.data.Dataset.from_tensor_slices(make_images(512, 1))
    return data.repeat().batch(32)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(make_images(128, 2)).batch(32)


class DigitsCnnModel(keras.Model):
    """Two convolutions, and a dense layer."""

    def __init__(self, params):
        super().__init__()
        self.conv1 = keras.layers.Conv2D(
            8, 3, padding="same", use_bias=False, name="conv1"
        )
        # TF 1's moving variance of images has a factor n / (n - 1).
        self.bn1 = keras.layers.BatchNormalization(momentum=0.9, name="bn1")
        self.max_pooling2d = keras.layers.MaxPooling2D(2, 2)
        self.conv2 = keras.layers.Conv2D(
            16, 3, padding="same", activation="relu", name="conv2"
        )
        self.flatten = keras.layers.Flatten()
        self.dropout = keras.layers.Dropout(params["dropout"])
        self.logits = keras.layers.Dense(4, name="logits")
        self.accuracy = keras.metrics.Accuracy(name="accuracy")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        net = features["image"]
        net = self.conv1(net)
        net = self.bn1(net, training=training)
        net = keras.ops.relu(net)
        net = self.max_pooling2d(net)
        net = self.conv2(net)
        net = self.flatten(net)
        net = self.dropout(net, training=training)
        logits = self.logits(net)
        predictions = {
            "classes": keras.ops.cast(keras.ops.argmax(logits, axis=1), "int64"),
            "probabilities": keras.ops.softmax(logits),
        }
        return {**predictions, "logits": logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, logits = y, y_pred["logits"]
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(
            labels, logits
        )
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, predictions = y, y_pred
        self.accuracy.update_state(labels, predictions["classes"])
        return {"loss": self.mean_loss.result(), "accuracy": self.accuracy.result()}


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    return keras.optimizers.SGD(learning_rate=params["rate"])


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
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=25),
        keras.callbacks.TensorBoard(folder, update_freq=100),
        *callbacks,
    ]
    model.fit(data, steps_per_epoch=steps, callbacks=callbacks, verbose=2)
    model.save_weights(path)


def main(_):
    params = {"rate": 0.1, "dropout": 0.0}
    model = DigitsCnnModel(params)
    model.compile(make_optimizer(params))
    train(model, train_input_fn(), FLAGS.train_steps, FLAGS.model_dir)
    print(model.evaluate(eval_input_fn(), verbose=0, return_dict=True))


if __name__ == "__main__":
    app.run(main)
