"""Two heads on one body: what a visitor does, and how long he stays."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "multi_head_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")


def visits(count, seed):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, [count, 5]).astype(np.float32)
    action = (x[:, 0] > 0.2).astype(np.int64) + (x[:, 1] > 0)
    minutes = np.abs(x[:, 2] + x[:, 3])[:, None].astype(np.float32)
    return {"x": x}, {"action": action, "minutes": minutes}


def input_fn(params, seed=1):
    data = tf.data.Dataset.from_tensor_slices(visits(300, seed))
    return data.repeat().batch(params["batch_size"])


def eval_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(visits(100, 2))
    return data.batch(params["batch_size"])


class MultiHeadModel(keras.Model):
    """A body of two layers, and two heads."""

    def __init__(self, params):
        super().__init__()
        regularizer = keras.regularizers.L2(0.001 / 2)
        self.params = params
        self.body_first = keras.layers.Dense(
            16, activation="tanh", kernel_regularizer=regularizer, name="body_first"
        )
        self.body_second = keras.layers.Dense(
            8, activation="tanh", kernel_regularizer=regularizer, name="body_second"
        )
        self.action = keras.layers.Dense(3, name="action")
        self.minutes = keras.layers.Dense(1, name="minutes")
        self.accuracy_metric = keras.metrics.Accuracy(name="accuracy")
        self.rmse_metric = keras.metrics.RootMeanSquaredError(name="rmse")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        net = self.body_first(features["x"])
        net = self.body_second(net)
        action_logits = self.action(net)
        minutes = self.minutes(net)
        predictions = {
            "action": keras.ops.cast(keras.ops.argmax(action_logits, axis=1), "int64"),
            "minutes": minutes,
        }
        return {**predictions, "action_logits": action_logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, action_logits, minutes = y, y_pred["action_logits"], y_pred["minutes"]
        # Each head has its own loss.
        action_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(
            labels["action"], action_logits
        )
        minutes_loss = keras.losses.MeanSquaredError()(labels["minutes"], minutes)
        regularization = sum(self.losses)
        loss = action_loss + self.params["weight"] * minutes_loss + regularization
        if training and keras.backend.backend() == "tensorflow":
            tf.summary.scalar("action_loss", action_loss)
            tf.summary.scalar("minutes_loss", minutes_loss)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, minutes, predictions = y, y_pred["minutes"], y_pred
        self.accuracy_metric.update_state(labels["action"], predictions["action"])
        self.rmse_metric.update_state(labels["minutes"], minutes)
        return {
            "loss": self.mean_loss.result(),
            "accuracy": self.accuracy_metric.result(),
            "rmse": self.rmse_metric.result(),
        }


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    return keras.optimizers.Adagrad(learning_rate=params["rate"], epsilon=0.0)


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
    params = {"batch_size": 25, "rate": 0.1, "weight": 0.5}
    model = MultiHeadModel(params)
    model.compile(make_optimizer(params))
    train(model, input_fn(params), FLAGS.train_steps, FLAGS.model_dir)
    print(model.evaluate(eval_input_fn(params), verbose=0, return_dict=True))


if __name__ == "__main__":
    app.run(main)
