"""An autoencoder of small pictures."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "autoencoder_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")


def pictures(count, seed):
    rng = np.random.RandomState(seed)
    rows = rng.uniform(0, 1, [count, 8, 1])
    return (rows * rng.uniform(0, 1, [count, 1, 8])).reshape([count, 64]).astype(np.float32)


def input_fn(seed, repeat):
    images = pictures(256, seed)
    data = tf.data.Dataset.from_tensor_slices((images, images))
    return (data.repeat() if repeat else data).batch(32)


class AutoencoderModel(keras.Model):
    """The model of `model_fn`."""

    def __init__(self, params):
        super().__init__()
        self.encoder = keras.layers.Dense(
            params["hidden"], activation="relu", name="encoder"
        )
        self.code = keras.layers.Dense(params["code"], name="code")
        self.decoder = keras.layers.Dense(
            params["hidden"], activation="relu", name="decoder"
        )
        self.pixels = keras.layers.Dense(64, name="pixels")
        self.rmse_metric = keras.metrics.RootMeanSquaredError(name="rmse")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        # The code has far fewer numbers than a picture.
        hidden = self.encoder(features)
        code = self.code(hidden)
        hidden = self.decoder(code)
        logits = self.pixels(hidden)
        picture = keras.ops.sigmoid(logits)
        predictions = {"code": code, "picture": picture}
        return predictions

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, picture = y, y_pred["picture"]
        loss = keras.losses.MeanSquaredError()(labels, picture)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, picture = y, y_pred["picture"]
        self.rmse_metric.update_state(labels, picture)
        return {"loss": self.mean_loss.result(), "rmse": self.rmse_metric.result()}


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    return keras.optimizers.Adam(learning_rate=params["rate"], epsilon=1e-8)


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


def predict(model, data):
    """Yields the predictions of each example."""
    for batch in data:
        features = batch[0] if isinstance(batch, tuple) else batch
        features = keras.tree.map_structure(keras.ops.convert_to_tensor, features)
        found = model.predict_on_batch(features)
        if isinstance(found, dict):
            yield from (dict(zip(found, row)) for row in zip(*found.values()))
        else:
            yield from found


def main(_):
    params = {"hidden": 32, "code": 4, "rate": 0.005}
    model = AutoencoderModel(params)
    model.compile(make_optimizer(params))
    train(model, input_fn(1, True), FLAGS.train_steps, FLAGS.model_dir)
    print(model.evaluate(input_fn(2, False), verbose=0, return_dict=True))
    for prediction in predict(model, input_fn(2, False)):
        print("first code", prediction["code"])
        break


if __name__ == "__main__":
    app.run(main)
