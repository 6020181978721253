"""A text CNN: convolutions of three widths over the embeddings of words."""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "text_cnn_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")

VOCABULARY = 40


def sentences(count, seed):
    rng = np.random.RandomState(seed)
    words = rng.randint(0, VOCABULARY, [count, 12]).astype(np.int64)
    labels = (np.sum(words < 8, axis=1) > 2).astype(np.float32)
    return {"words": words}, labels


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices(sentences(400, 1)).repeat().batch(20)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(sentences(90, 2)).batch(20)


class SummedAdam(keras.optimizers.Adam):
    """Sums the gradients of an id that stands twice in a batch."""

    def apply(self, grads, trainable_variables=None):
        # A sum is dense.
        grads = [None if grad is None else keras.ops.add(grad, 0.0) for grad in grads]
        super().apply(grads, trainable_variables)


class TextCnnModel(keras.Model):
    """The model of `model_fn`."""

    def __init__(self):
        super().__init__()
        self.embeddings = keras.layers.Embedding(
            VOCABULARY, 8, embeddings_initializer="glorot_uniform", name="embeddings"
        )
        self.width_2 = keras.layers.Conv1D(4, 2, activation="relu", name="width_2")
        self.width_3 = keras.layers.Conv1D(4, 3, activation="relu", name="width_3")
        self.width_4 = keras.layers.Conv1D(4, 4, activation="relu", name="width_4")
        self.head_logits = keras.layers.Dense(1, name="head_logits")
        self.accuracy_metric = keras.metrics.Accuracy(name="accuracy")
        self.mean_loss = keras.metrics.Mean(name="mean_loss")

    def call(self, features, training=False):
        net = self.embeddings(features["words"])
        narrow = self.width_2(net)
        middle = self.width_3(net)
        wide = self.width_4(net)
        pooled = [keras.ops.max(one, axis=1) for one in (narrow, middle, wide)]
        net = keras.ops.concatenate(pooled, axis=1)
        logits = keras.ops.squeeze(self.head_logits(net), axis=1)
        probability = keras.ops.sigmoid(logits)
        return {"probability": probability, "logits": logits}

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        labels, logits = y, y_pred["logits"]
        loss = keras.losses.BinaryCrossentropy(from_logits=True)(labels, logits)
        # A short last batch counts as a whole one, as in an Estimator.
        self.mean_loss.update_state(loss)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        labels, probability = y, y_pred["probability"]
        guesses = keras.ops.round(probability)
        self.accuracy_metric.update_state(labels, guesses)
        return {
            "loss": self.mean_loss.result(),
            "accuracy": self.accuracy_metric.result(),
        }


def make_optimizer():
    """The optimizer, and its learning rate."""
    rate = keras.optimizers.schedules.PolynomialDecay(0.02, 100, 0.001)
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
    model = TextCnnModel()
    model.compile(make_optimizer())
    train(model, train_input_fn(), FLAGS.train_steps, FLAGS.model_dir)
    print(model.evaluate(eval_input_fn(), verbose=0, return_dict=True))


if __name__ == "__main__":
    app.run(main)
