"""An LSTM that reads the values of a sensor, and says which of three motions they are of."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags, logging

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "lstm_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("num_units", 12, "Units of the LSTM.")

MAX_LENGTH = 10


def motions(count, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 3, [count]).astype(np.int32)
    lengths = rng.randint(4, MAX_LENGTH + 1, [count]).astype(np.int32)
    times = np.arange(MAX_LENGTH)[None, :, None] * (labels[:, None, None] + 1) * 0.5
    values = np.sin(times + rng.uniform(0, 0.5, [count, 1, 2])) + rng.normal(
        0, 0.1, [count, MAX_LENGTH, 2])
    values *= np.arange(MAX_LENGTH)[None, :, None] < lengths[:, None, None]
    return {"values": values.astype(np.float32), "length": lengths}, labels


def train_input_fn():
    data = tf.data.Dataset.from_tensor_slices(motions(480, 1))
    return data.repeat().batch(24).prefetch(1)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(motions(100, 2)).batch(24)


class LstmModel(keras.Model):
    """Reads a sequence to its end, and classifies the last state."""

    def __init__(self, params):
        super().__init__()
        self.inputs_layer = keras.layers.Dense(6, activation="tanh", name="inputs")
        # TF 1's gates are in another order, and its bias lacks the forget gate's 1.
        self.reader_rnn = keras.layers.LSTM(
            params["num_units"],
            return_sequences=True,
            return_state=True,
            zero_output_for_mask=True,
            name="reader_rnn",
        )
        self.dropout = keras.layers.Dropout(params["dropout"])
        self.logits = keras.layers.Dense(3, name="logits")
        self.accuracy_metric = keras.metrics.Accuracy(name="accuracy")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        inputs = self.inputs_layer(features["values"])
        outputs, state_h, _ = self.reader_rnn(
            inputs, mask=tf.sequence_mask(features["length"], inputs.shape[1])
        )
        # The mean of what it said, beside what it remembers.
        lengths = keras.ops.cast(features["length"], "float32")
        mean = keras.ops.sum(outputs, axis=1) / keras.ops.expand_dims(lengths, axis=1)
        net = keras.ops.concatenate([state_h, mean], axis=1)
        net = self.dropout(net, training=training)
        logits = self.logits(net)
        predicted = keras.ops.cast(keras.ops.argmax(logits, axis=1), "int64")
        predictions = {"motion": predicted, "probabilities": keras.ops.softmax(logits)}
        return {**predictions, "logits": logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, logits = y, y_pred["logits"]
        loss = keras.ops.mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, predicted = y, y_pred["motion"]
        self.accuracy_metric.update_state(labels, predicted)
        return {
            "loss": self.mean_loss.result(),
            "accuracy": self.accuracy_metric.result(),
        }


def make_optimizer(params):
    """The optimizer, and its learning rate."""
    return keras.optimizers.Adam(
        learning_rate=params["learning_rate"], epsilon=1e-8, global_clipnorm=1.0
    )


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
    params = {"num_units": FLAGS.num_units, "learning_rate": 0.01, "dropout": 0.0}
    model = LstmModel(params)
    model.compile(make_optimizer(params))
    train(model, train_input_fn(), FLAGS.train_steps, FLAGS.model_dir)
    results = model.evaluate(eval_input_fn(), verbose=0, return_dict=True)
    print("accuracy %.4f" % results["accuracy"])


if __name__ == "__main__":
    logging.set_verbosity(logging.INFO)
    tf.get_logger().setLevel('INFO')
    app.run(main)
