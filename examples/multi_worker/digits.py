"""One worker's program: a legacy Estimator under MultiWorkerMirroredStrategy.

multi_worker.py starts it, once for each worker, with TF_CONFIG. Alone it takes the whole batch.
"""

import argparse
import json
import os

import numpy as np
import tensorflow as tf2
from sklearn.datasets import load_digits

import estimator2strategy.tf1 as tf

BATCH = 64  # of all workers together


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, 64, activation=tf.nn.relu, name="hidden")
    logits = tf.layers.dense(net, 10, name="logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    optimizer = tf.train.AdamOptimizer(0.002)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def digits(split):
    data = load_digits()
    part = slice(0, 1408) if split == "train" else slice(1408, None)
    return (data.data[part] / 16).astype(np.float32), data.target[part].astype(np.int32)


def train_input_fn(input_context=None):
    """Of each 64 digits a worker takes every second one, if there are two."""
    data = tf.data.Dataset.from_tensor_slices(digits("train"))
    workers = 1
    if input_context:
        workers = input_context.num_input_pipelines
        data = data.shard(workers, input_context.input_pipeline_id)
    return data.repeat().batch(BATCH // workers, drop_remainder=True)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(digits("test")).batch(128)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--train_steps", type=int, default=200)
    args = parser.parse_args()
    strategy = None
    if "TF_CONFIG" in os.environ:
        strategy = tf2.distribute.MultiWorkerMirroredStrategy()
    config = tf.estimator.RunConfig(
        model_dir=args.model_dir, train_distribute=strategy, save_summary_steps=1, tf_random_seed=1
    )
    estimator = tf.estimator.Estimator(model_fn, config=config)
    estimator.train(train_input_fn, max_steps=args.train_steps)
    if config.is_chief:
        alone = tf.estimator.RunConfig(model_dir=args.model_dir)
        os.environ.pop("TF_CONFIG", None)
        results = tf.estimator.Estimator(model_fn, config=alone).evaluate(eval_input_fn)
        print(json.dumps({"accuracy": float(results["accuracy"])}), flush=True)


if __name__ == "__main__":
    main()
