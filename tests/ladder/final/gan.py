"""A GAN: one network draws curves, another tells them from real ones."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "gan_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")

POINTS = 12


def curves(count, seed):
    rng = np.random.RandomState(seed)
    places = np.linspace(0, 3, POINTS) + rng.uniform(0, 1, [count, 1])
    real = rng.uniform(0.5, 1, [count, 1]) * np.sin(places)
    return {
        "noise": rng.normal(size=[count, 4]).astype(np.float32),
        "real": real.astype(np.float32),
    }


def input_fn(seed, repeat):
    data = tf.data.Dataset.from_tensor_slices((curves(320, seed), np.zeros([320], np.float32)))
    return (data.repeat() if repeat else data).batch(32)


class Generator(keras.layers.Layer):
    """Draws curves."""

    def __init__(self, units, name=None):
        super().__init__(name=name)
        self.hidden = keras.layers.Dense(
            units, activation=tf.nn.leaky_relu, name="hidden"
        )
        self.points = keras.layers.Dense(POINTS, activation="tanh", name="points")

    def call(self, noise):
        net = self.hidden(noise)
        return self.points(net)


class Discriminator(keras.layers.Layer):
    """Tells real curves from drawn ones."""

    def __init__(self, units, name=None):
        super().__init__(name=name)
        self.hidden = keras.layers.Dense(
            units, activation=tf.nn.leaky_relu, name="hidden"
        )
        self.logits = keras.layers.Dense(1, name="logits")

    def call(self, points):
        net = self.hidden(points)
        return self.logits(net)


class GanModel(keras.Model):
    """The model of `model_fn`."""

    def __init__(self, params):
        super().__init__()
        self.generator = Generator(params["units"], name="generator")
        self.discriminator = Discriminator(params["units"], name="discriminator")
        self.discriminator_optimizer = keras.optimizers.Adam(
            learning_rate=params["rate"], beta_1=0.5, epsilon=1e-8
        )
        self.found_metric = keras.metrics.Mean(name="found")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        drawn = self.generator(features["noise"])
        real_logits = self.discriminator(features["real"])
        drawn_logits = self.discriminator(drawn)
        return {
            "curve": drawn,
            "drawn_logits": drawn_logits,
            "real_logits": real_logits,
        }

    def compute_losses(self, x, y, y_pred, training=True):
        drawn_logits, real_logits = y_pred["drawn_logits"], y_pred["real_logits"]
        real_loss = keras.losses.BinaryCrossentropy(from_logits=True)(
            keras.ops.ones_like(real_logits), real_logits
        )
        drawn_loss = keras.losses.BinaryCrossentropy(from_logits=True)(
            keras.ops.zeros_like(drawn_logits), drawn_logits
        )
        discriminator_loss = real_loss + drawn_loss
        generator_loss = keras.losses.BinaryCrossentropy(from_logits=True)(
            keras.ops.ones_like(drawn_logits), drawn_logits
        )
        loss = discriminator_loss + generator_loss
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss, discriminator_loss, generator_loss

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        return self.compute_losses(x, y, y_pred, training)[0]

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        drawn_logits = y_pred["drawn_logits"]
        is_found = keras.ops.cast(drawn_logits < 0, "float32")
        self.found_metric.update_state(is_found)
        return {"loss": self.mean_loss.result(), "found": self.found_metric.result()}

    def build_optimizers(self):
        """Makes the optimizers' variables."""
        self.discriminator_optimizer.build(self.discriminator.trainable_variables)
        self.optimizer.build(self.generator.trainable_variables)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            y_pred = self(x, training=True)
            loss, discriminator_loss, generator_loss = self.compute_losses(x, y, y_pred)
        # Both move from where they are, not the one after the other.
        # All gradients are taken before the first variable moves.
        steps = [
            (
                self.discriminator_optimizer,
                discriminator_loss,
                self.discriminator.trainable_variables,
            ),
            (self.optimizer, generator_loss, self.generator.trainable_variables),
        ]
        gradients = [tape.gradient(target, variables) for _, target, variables in steps]
        for (optimizer, _, variables), of_step in zip(steps, gradients):
            optimizer.apply(of_step, variables)
        return self.compute_metrics(x, y, y_pred)


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    return keras.optimizers.Adam(
        learning_rate=2 * params["rate"], beta_1=0.5, epsilon=1e-8
    )


def train(model, data, max_steps, folder, callbacks=()):
    """Trains up to `max_steps`, from the folder's weights if any."""
    path = os.path.join(folder, "model.weights.h5")
    features, _ = next(iter(data))
    model(features)  # makes the variables
    model.build_optimizers()
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
    params = {"units": 16, "rate": 0.002}
    model = GanModel(params)
    model.compile(make_optimizer(params))
    train(model, input_fn(1, True), FLAGS.train_steps, FLAGS.model_dir)
    print(model.evaluate(input_fn(2, False), verbose=0, return_dict=True))


if __name__ == "__main__":
    app.run(main)
