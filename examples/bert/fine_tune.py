"""BERT-style: pre-train on plain text, fine-tune a classifier with init_from_checkpoint.

    python examples/bert/fine_tune.py --out=/tmp/bert

The text is what scikit-learn says of its data sets. Pre-training guesses words that are masked;
fine-tuning tells which data set 16 words are about. It runs in an Estimator, with Keras's fit
(LegacyModel), and in an Estimator without the pre-training. Exits with 1 when the losses of the
first two differ by more than 0.0001.
"""

import argparse
import os
import re
import shutil
import sys

import keras
import numpy as np
from sklearn import datasets

import estimator2strategy as e2s
import estimator2strategy.tf1 as tf

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir)]
import modeling
import shared

LENGTH = 16
BATCH = 32
MASK = 1  # 0 is padding
TOLERANCE = 1e-4
SETS = ("iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud")


def texts():
    """For each data set, its words."""
    described = [getattr(datasets, f"load_{name}")().DESCR.lower() for name in SETS]
    return [re.findall(r"[a-z]+", text) for text in described]


def examples():
    """ids [n, LENGTH] int32, labels [n] int32, in a fixed order; and the size of the vocabulary."""
    words = texts()
    vocabulary = {w: i + 2 for i, w in enumerate(sorted({w for text in words for w in text}))}
    windows, labels = [], []
    for label, text in enumerate(words):
        for start in range(0, len(text) - LENGTH, 8):
            windows.append([vocabulary[w] for w in text[start : start + LENGTH]])
            labels.append(label)
    order = np.random.RandomState(0).permutation(len(labels))
    ids, labels = np.array(windows, np.int32)[order], np.array(labels, np.int32)[order]
    return ids, labels, len(vocabulary) + 2


IDS, LABELS, VOCABULARY = examples()
CONFIG = modeling.Config(VOCABULARY, length=LENGTH)
TRAINED = len(LABELS) * 3 // 4


def masked_input_fn():
    masked = np.random.RandomState(1).rand(*IDS.shape) < 0.15
    features = {"ids": np.where(masked, MASK, IDS).astype(np.int32), "masked": masked}
    return tf.data.Dataset.from_tensor_slices((features, IDS)).repeat().batch(BATCH)


def pretrain_model_fn(features, labels, mode):
    net = modeling.encoder(features["ids"], CONFIG)
    logits = modeling.dense(net, VOCABULARY, "cls/predictions")
    weights = tf.cast(features["masked"], tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, weights)
    train_op = tf.train.AdamOptimizer(0.003).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def assignment_map(checkpoint):
    """Variables of this graph that the checkpoint has too, as google-research/bert maps them."""
    there = {name for name, _ in tf.train.list_variables(checkpoint)}
    return {v.op.name: v.op.name for v in tf.trainable_variables() if v.op.name in there}


def classifier_model_fn(features, labels, mode, params):
    net = modeling.encoder(features, CONFIG)
    pooled = modeling.dense(net[:, 0], CONFIG.hidden, "bert/pooler", tf.tanh)
    logits = modeling.dense(pooled + tf.reduce_mean(net, axis=1), len(SETS), "classifier")
    if params["init_checkpoint"]:
        found = assignment_map(params["init_checkpoint"])
        tf.train.init_from_checkpoint(params["init_checkpoint"], found)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    train_op = tf.train.AdamOptimizer(0.001).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy}
    )


def train_input_fn():
    pairs = (IDS[:TRAINED], LABELS[:TRAINED])
    return tf.data.Dataset.from_tensor_slices(pairs).repeat().batch(BATCH)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices((IDS[TRAINED:], LABELS[TRAINED:])).batch(BATCH)


def run_config(model_dir):
    shutil.rmtree(model_dir, ignore_errors=True)
    return tf.estimator.RunConfig(model_dir=model_dir, save_summary_steps=1, tf_random_seed=1)


def fine_tune(model_dir, init_checkpoint, steps):
    params = {"init_checkpoint": init_checkpoint}
    estimator = tf.estimator.Estimator(
        classifier_model_fn, config=run_config(model_dir), params=params
    )
    estimator.train(train_input_fn, max_steps=steps)
    accuracy = float(estimator.evaluate(eval_input_fn)["accuracy"])
    return shared.event_losses(model_dir), accuracy


def fine_tune_with_keras(init_checkpoint, start, steps):
    model = e2s.LegacyModel(classifier_model_fn, {"init_checkpoint": init_checkpoint})
    model.load_checkpoint(start)  # the same random weights above the encoder
    model.compile()
    history = model.fit(train_input_fn(), epochs=steps, steps_per_epoch=1, verbose=0).history
    accuracy = model.evaluate(eval_input_fn(), return_dict=True, verbose=0)["accuracy"]
    return (1 + np.arange(steps), np.array(history["loss"])), accuracy


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="bert", help="where all goes")
    parser.add_argument("--pretrain_steps", type=int, default=300)
    parser.add_argument("--train_steps", type=int, default=60)
    args = parser.parse_args(argv)
    keras.utils.set_random_seed(1)
    config = run_config(os.path.join(args.out, "pretrained"))
    pretraining = tf.estimator.Estimator(pretrain_model_fn, config=config)
    pretraining.train(masked_input_fn, max_steps=args.pretrain_steps)
    checkpoint = pretraining.latest_checkpoint()

    tuned_dir = os.path.join(args.out, "tuned")
    tuned, accuracy = fine_tune(tuned_dir, checkpoint, args.train_steps)
    start = os.path.join(tuned_dir, "model.ckpt-0")
    fitted, of_fit = fine_tune_with_keras(checkpoint, start, args.train_steps)
    scratch, of_scratch = fine_tune(os.path.join(args.out, "scratch"), None, args.train_steps)
    difference = shared.largest_difference(tuned, fitted)
    print(f"Held-out windows: {accuracy:.1%}; fit: {of_fit:.1%}; from scratch: {of_scratch:.1%}")
    print(f"Largest difference of the losses, Estimator and fit: {difference:.1e}")
    curves = {
        f"pre-trained, Estimator ({accuracy:.0%})": tuned,
        f"pre-trained, LegacyModel.fit ({of_fit:.0%})": fitted,
        f"from scratch ({of_scratch:.0%})": scratch,
    }
    shared.pictures(
        os.path.join(args.out, "bert.png"),
        "Fine-tuning: which data set are 16 words about?",
        [
            shared.curves({"masked words": shared.event_losses(config.model_dir)}, title="before"),
            shared.curves(curves, title="fine-tuning (held-out accuracy)"),
        ],
    )
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
