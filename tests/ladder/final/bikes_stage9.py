"""Predicts how busy a bicycle station is: bikes.py at stage 9, on JAX or torch, without TensorFlow.

    KERAS_BACKEND=jax python bikes_stage9.py --reader=pyarrow --weights=first.weights.h5

The data lies in CSV files, which PyArrow reads; grain deals them out, or a generator does. Needs
keras, pyarrow, a backend, and for --reader=grain grain.
"""

import argparse
import itertools
import json
import os

import keras
import numpy as np
import pyarrow as pa
from pyarrow import csv

NUMBERS = ["number_%d" % i for i in range(6)]
TYPES = {**dict.fromkeys(NUMBERS, pa.float32()), "station": pa.int64(), "label": pa.int64()}


def write_csv(path, numbers, station, label):
    """Writes a file with a line for each example."""
    columns = [*numbers.T, station, label]
    csv.write_csv(pa.table(dict(zip(TYPES, map(pa.array, columns)))), path)


def read_csv(path):
    """Features and labels of all lines, as arrays."""
    table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=TYPES))
    columns = {name: table[name].to_numpy() for name in TYPES}
    numbers = np.stack([columns[name] for name in NUMBERS], axis=1)
    return {"numbers": numbers, "station": columns["station"]}, columns["label"]


def with_pyarrow(path, batch_size, repeat):
    """Batches as those of `Dataset.repeat().batch(batch_size)`."""
    features, labels = read_csv(path)
    count = len(labels)
    for start in itertools.count(0, batch_size):
        if start >= count and not repeat:
            return
        rows = np.arange(start, start + batch_size)
        rows = rows % count if repeat else rows[rows < count]
        yield {key: value[rows] for key, value in features.items()}, labels[rows]


def with_grain(path, batch_size, repeat):
    """The same by grain, whose workers, shuffle and sharding are there when they are needed."""
    import grain

    features, labels = read_csv(path)

    class Rows:
        def __len__(self):
            return len(labels)

        def __getitem__(self, i):
            return {key: value[i] for key, value in features.items()}, labels[i]

    data = grain.MapDataset.source(Rows())
    if repeat:
        data = data.repeat()
    return data.batch(batch_size)


READERS = {"pyarrow": with_pyarrow, "grain": with_grain}


class Losses(keras.callbacks.Callback):
    """Keeps the loss of each step."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", choices=READERS, default="pyarrow")
    parser.add_argument("--folder", default=".", help="has train.csv and eval.csv")
    parser.add_argument("--weights", help="of `e2s checkpoint convert`")
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    read, size = READERS[args.reader], 32
    train, evaluation = (os.path.join(args.folder, f"{n}.csv") for n in ("train", "eval"))
    model = build()
    features, labels = read_csv(evaluation)
    model({key: value[:size] for key, value in features.items()})  # makes the variables
    model.optimizer.build(model.trainable_variables)
    if args.weights:
        model.load_weights(args.weights)
    first = np.asarray(model.predict(features, batch_size=size, verbose=0)["probabilities"])
    seen = Losses()
    model.fit(
        read(train, size, True),
        steps_per_epoch=args.steps,
        shuffle=False,
        callbacks=[seen],
        verbose=0,
    )
    found = model.evaluate(read(evaluation, size, False), verbose=0, return_dict=True)
    print(
        json.dumps(
            {
                "probabilities": first.tolist(),
                "losses": seen.losses,
                "evaluation": {key: float(value) for key, value in found.items()},
            }
        )
    )


def build():
    params = {"batch_size": 32, "learning_rate": 0.01}
    model = BikesModel(params)
    model.compile(make_optimizer(params))
    return model


if __name__ == "__main__":
    main()
