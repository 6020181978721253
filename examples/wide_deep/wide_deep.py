"""A wide-and-deep ranker with feature columns: who of two diabetes patients gets worse?

    python examples/wide_deep/wide_deep.py --out=/tmp/wide_deep

Trains a legacy model_fn (feature columns, FTRL for the wide part, Adagrad for the deep one) with
Estimator, and the same model_fn with Keras's fit as a LegacyModel, from the same checkpoint. Exits
with 1 when their losses differ by more than 0.00001 of the first.
"""

import argparse
import os
import shutil
import sys

import keras
import numpy as np
from sklearn.datasets import load_diabetes

import estimator2strategy as e2s
import estimator2strategy.tf1 as tf

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import shared

BATCH = 40
TRAINED = 360  # of 442 patients
TOLERANCE = 1e-5
NUMBERS = ("age", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")


def patients(split):
    """Features of patients, and by how much they got worse (0 to 1)."""
    data = load_diabetes(scaled=False)
    order = np.random.RandomState(0).permutation(len(data.target))
    order = order[:TRAINED] if split == "train" else order[TRAINED:]
    features = {
        name: data.data[order, i].astype(np.float32) for i, name in enumerate(data.feature_names)
    }
    features["sex"] = np.where(features["sex"] == 1, "one", "two")
    spread = {name: features[name] for name in NUMBERS}
    for name, values in spread.items():
        mean, deviation = data.data[:, data.feature_names.index(name)].mean(), values.std()
        features[name] = ((values - mean) / deviation).astype(np.float32)
    return features, (data.target[order, None] / 346).astype(np.float32)


def columns():
    """(wide, deep)."""
    column = tf.feature_column
    sex = column.categorical_column_with_vocabulary_list("sex", ["one", "two"])
    numbers = [column.numeric_column(name) for name in NUMBERS]
    buckets = [column.bucketized_column(number, [-1.0, -0.3, 0.3, 1.0]) for number in numbers]
    crossed = [
        column.crossed_column([buckets[0], buckets[1]], 64),
        column.crossed_column(["sex", buckets[1]], 32),
    ]
    return [sex, *buckets, *crossed], [*numbers, column.embedding_column(sex, 2)]


def model_fn(features, labels, mode, params):
    wide, deep = columns()
    with tf.variable_scope("wide"):
        scores = tf.feature_column.linear_model(features, wide)
    with tf.variable_scope("deep"):
        net = tf.feature_column.input_layer(features, deep)
        for units in params["hidden_units"]:
            net = tf.layers.dense(net, units, activation=tf.nn.relu)
        scores += tf.layers.dense(net, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"score": scores})
    # All pairs of a batch: the one who gets worse shall have the higher score.
    worse = tf.cast(labels - tf.transpose(labels) > 0, tf.float32)
    margins = scores - tf.transpose(scores)
    loss = tf.losses.sigmoid_cross_entropy(tf.ones_like(margins), margins, weights=worse)
    if mode == tf.estimator.ModeKeys.EVAL:
        ordered = tf.metrics.mean(tf.cast(margins > 0, tf.float32), weights=worse)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"ordered": ordered})
    step = tf.train.get_global_step()
    train_op = tf.group(
        tf.train.FtrlOptimizer(0.05).minimize(loss, step, tf.trainable_variables("wide")),
        tf.train.AdagradOptimizer(0.05).minimize(loss, None, tf.trainable_variables("deep")),
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices(patients("train")).repeat().batch(BATCH)


def eval_input_fn():
    features, labels = patients("test")
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(len(labels))


def train_estimator(model_dir, params, steps):
    config = tf.estimator.RunConfig(model_dir=model_dir, save_summary_steps=1, tf_random_seed=1)
    estimator = tf.estimator.Estimator(model_fn, config=config, params=params)
    estimator.train(train_input_fn, max_steps=steps)
    return shared.event_losses(model_dir), float(estimator.evaluate(eval_input_fn)["ordered"])


def train_keras(checkpoint, params, steps):
    model = e2s.LegacyModel(model_fn, params=params)
    model.load_checkpoint(checkpoint)
    model.compile()
    history = model.fit(train_input_fn(), epochs=steps, steps_per_epoch=1, verbose=0).history
    results = model.evaluate(eval_input_fn(), return_dict=True, verbose=0)
    return (1 + np.arange(steps), np.array(history["loss"])), results["ordered"]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="wide_deep", help="where all goes")
    parser.add_argument("--train_steps", type=int, default=200, help="number of steps")
    args = parser.parse_args(argv)
    params = {"hidden_units": [32, 16]}
    model_dir = os.path.join(args.out, "estimator")
    shutil.rmtree(model_dir, ignore_errors=True)
    keras.utils.set_random_seed(1)
    legacy, legacy_ordered = train_estimator(model_dir, params, args.train_steps)
    start = os.path.join(model_dir, "model.ckpt-0")
    fitted, fitted_ordered = train_keras(start, params, args.train_steps)
    difference = shared.largest_difference(legacy, fitted) / legacy[1][0]
    print(f"Pairs of held-out patients in order: {legacy_ordered:.1%} (fit: {fitted_ordered:.1%})")
    print(f"Largest difference of the losses, as a part of the first: {difference:.1e}")
    named = {"Estimator": legacy, "LegacyModel.fit": fitted}
    title = f"held-out pairs in order: {legacy_ordered:.1%}, {fitted_ordered:.1%}"
    path = os.path.join(args.out, "wide_deep.png")
    shared.pictures(path, "A wide-and-deep ranker", [shared.curves(named, title=title)])
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
