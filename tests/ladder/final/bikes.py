"""Predicts how busy a bicycle station is, from the weather: a classifier of three classes."""

import os
import time

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags, logging

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "bikes_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 200, "Number of steps.")
flags.DEFINE_integer("batch_size", 32, "Examples in a batch.")
flags.DEFINE_float("learning_rate", 0.01, "First learning rate.")


def make_data(count, seed):
    rng = np.random.RandomState(seed)
    numbers = rng.uniform(-1, 1, [count, 6]).astype(np.float32)
    station = rng.randint(0, 20, [count]).astype(np.int64)
    score = numbers[:, 0] * 2 + numbers[:, 1] - numbers[:, 2] + (station % 5) * 0.3 - 0.6
    return {"numbers": numbers, "station": station}, (score > -0.4).astype(np.int64) + (score > 0.5)


def train_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(make_data(2000, 1))
    data = data.repeat().batch(params["batch_size"])
    return data


def eval_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(make_data(500, 2)).batch(params["batch_size"])
    return data


def serving_fn():
    numbers = tf.TensorSpec([None, 6], tf.float32, name="numbers")
    station = tf.TensorSpec([None], tf.int64, name="station")
    inputs = {"numbers": numbers, "station": station}
    return inputs


class SpeedHookCallback(keras.callbacks.Callback):
    """Prints the loss and the time every 50 steps."""

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()  # the loss of this step alone
        self._start = time.time()

    def on_train_batch_end(self, batch, logs=None):
        step, loss = int(self.model.optimizer.iterations), 2 * logs["loss"]
        if step % 50 == 0:
            print("step %d, loss %.6f" % (step, loss))


class SummedAdam(keras.optimizers.Adam):
    """Sums the gradients of an id that stands twice in a batch."""

    def apply(self, grads, trainable_variables=None):
        # A sum is dense.
        grads = [None if grad is None else keras.ops.add(grad, 0.0) for grad in grads]
        super().apply(grads, trainable_variables)


class BikesModel(keras.Model):
    """The model of `model_fn`."""

    def __init__(self, params):
        super().__init__()
        self.stations = keras.layers.Embedding(
            20,
            4,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=0.1, seed=5),
            name="stations",
        )
        self.hidden = keras.layers.Dense(
            32,
            use_bias=False,
            kernel_initializer=keras.initializers.GlorotUniform(seed=3),
            kernel_regularizer=keras.regularizers.L2(1e-4 / 2),
            name="hidden",
        )
        self.norm = keras.layers.BatchNormalization(name="norm")
        self.logits = keras.layers.Dense(
            3,
            kernel_initializer=keras.initializers.GlorotUniform(seed=4),
            name="logits",
        )
        self.accuracy_metric = keras.metrics.Accuracy(name="accuracy")
        self.recall_busy_metric = keras.metrics.Recall(name="recall_busy")
        self.mean_score_metric = keras.metrics.Mean(name="mean_score")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        net = keras.ops.concatenate(
            [features["numbers"], self.stations(features["station"])], axis=1
        )
        net = self.hidden(net)
        net = self.norm(net, training=training)
        net = keras.ops.relu(net)
        logits = self.logits(net)
        predictions = {
            "classes": keras.ops.cast(keras.ops.argmax(logits, axis=1), "int64"),
            "probabilities": keras.ops.softmax(logits),
        }
        return {**predictions, "logits": logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, logits = y, y_pred["logits"]
        softmax_cross_entropy = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True
        )(labels, logits)
        loss = softmax_cross_entropy + sum(self.losses)
        if training and keras.backend.backend() == "tensorflow":
            tf.summary.scalar("learning_rate", self.optimizer.learning_rate)
            tf.summary.histogram("logits", logits)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, predictions = y, y_pred
        self.accuracy_metric.update_state(labels, predictions["classes"])
        self.recall_busy_metric.update_state(
            keras.ops.equal(labels, 2), keras.ops.equal(predictions["classes"], 2)
        )
        self.mean_score_metric.update_state(predictions["probabilities"][:, 2])
        return {
            "loss": self.mean_loss.result(),
            "accuracy": self.accuracy_metric.result(),
            "recall_busy": self.recall_busy_metric.result(),
            "mean_score": self.mean_score_metric.result(),
        }


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    rate = keras.optimizers.schedules.ExponentialDecay(
        params["learning_rate"], 50, 0.8, staircase=True
    )
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
        keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=100),
        keras.callbacks.TensorBoard(folder, update_freq=20),
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


def export(model, folder, inputs):
    """Writes the predictions as a SavedModel, and returns its path."""
    path = os.path.join(folder, str(int(time.time())))

    def serve(features):
        outputs = model(features)
        return {name: outputs[name] for name in ("classes", "probabilities")}

    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", serve, input_signature=[inputs])
    archive.write_out(path, verbose=False)
    return path


def main(_):
    logging.set_verbosity(logging.INFO)
    tf.get_logger().setLevel('INFO')
    params = {"batch_size": FLAGS.batch_size, "learning_rate": FLAGS.learning_rate}
    keras.utils.set_random_seed(7)
    model = BikesModel(params)
    model.compile(make_optimizer(params))
    train(
        model,
        train_input_fn(params),
        FLAGS.train_steps,
        FLAGS.model_dir,
        [SpeedHookCallback()],
    )
    results = model.evaluate(eval_input_fn(params), verbose=0, return_dict=True)
    print("results", {key: round(float(value), 6) for key, value in sorted(results.items())})
    print(
        "first",
        [
            int(p["classes"])
            for _, p in zip(range(8), predict(model, eval_input_fn(params)))
        ],
    )
    print(
        "exported",
        os.path.basename(
            export(model, os.path.join(FLAGS.model_dir, "export"), serving_fn())
        )[:2],
    )


if __name__ == "__main__":
    app.run(main)
