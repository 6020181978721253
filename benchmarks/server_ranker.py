"""A ranker with two tables of 1,000,000 x 32, as one task of a job with parameter servers.

    TF_CONFIG=... e2s run --tf2 benchmarks/server_ranker.py --model_dir=DIR --steps=2000

`benchmarks.servers` starts it with this package and with TF 2.15's own Estimator. Each task that
trains prints a line `AT <seconds> <global step>` after its first step and then every few.
"""

import argparse
import time

import numpy as np
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir", required=True)
parser.add_argument("--steps", type=int, required=True, help="global steps, of all tasks together")
parser.add_argument("--gradients", choices=["sparse", "dense"], default="sparse")
parser.add_argument("--every", type=int, default=20, help="steps between two lines")
args = parser.parse_args()

ROWS, DIMENSIONS, HISTORY, UNITS, CLASSES, BATCH = 1_000_000, 32, 20, 64, 10, 64


def input_fn():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, ROWS, (4096, 2 + HISTORY)).astype(np.int32)
    labels = rng.integers(0, CLASSES, 4096).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((ids, labels)).repeat().batch(BATCH).prefetch(2)


def lookup(table, ids):
    if args.gradients == "dense":
        # A copy of all rows: its gradient has all rows too.
        return tf.gather(table * 1.0, ids)
    return tf.nn.embedding_lookup(table, ids)


def model_fn(features, labels, mode):
    normal = tf.truncated_normal_initializer(stddev=0.05)
    users, items = (
        tf.get_variable(name, [ROWS, DIMENSIONS], initializer=normal) for name in ("users", "items")
    )
    found = [
        lookup(users, features[:, 0]),
        lookup(items, features[:, 1]),
        tf.reduce_mean(lookup(items, features[:, 2:]), 1),
    ]
    hidden = tf.concat(found, -1)
    for name, units in (("hidden", UNITS), ("logits", CLASSES)):
        kernel = tf.get_variable(f"{name}/kernel", [int(hidden.shape[-1]), units])
        bias = tf.get_variable(f"{name}/bias", [units], initializer=tf.zeros_initializer())
        hidden = tf.matmul(tf.nn.relu(hidden) if name == "logits" else hidden, kernel) + bias
    loss = tf.losses.sparse_softmax_cross_entropy(labels, hidden)
    optimizer = tf.train.AdagradOptimizer(0.05)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        training_hooks=[Tells()],
        eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, tf.argmax(hidden, -1))},
    )


class Tells(tf.train.SessionRunHook):
    def __init__(self):
        self._steps = 0

    def before_run(self, run_context):
        if self._steps % args.every:
            return None
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        if self._steps % args.every == 0:
            print("AT", time.time(), int(run_values.results), flush=True)
        self._steps += 1


config = tf.estimator.RunConfig(
    model_dir=args.model_dir,
    save_checkpoints_secs=600,
    save_summary_steps=100,
    experimental_max_worker_delay_secs=0,
)
tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=config),
    tf.estimator.TrainSpec(input_fn, max_steps=args.steps),
    tf.estimator.EvalSpec(input_fn, steps=20, start_delay_secs=0, throttle_secs=1),
)
