"""A program for several processes; what it prints is the same in one process with all the input."""

from __future__ import annotations

import json

import tensorflow as tf

from estimator2strategy import estimator
from tests.hooks import LossRecorder

tf1 = tf.compat.v1

FEATURES = [[1.0, 2.0], [3.0, 1.0], [0.0, 1.0], [2.0, 2.0]]
LABELS = [[1.0], [2.0], [3.0], [4.0]]


def model_fn(features, labels, mode, params):
    # Each process would start from another value.
    start = tf1.constant_initializer(0.5 + params["number"])
    kernel = tf1.get_variable("kernel", [2, 1], initializer=start)
    bias = tf1.get_variable("bias", [1], initializer=tf1.zeros_initializer())
    loss = tf1.losses.mean_squared_error(labels, tf.matmul(features, kernel) + bias)
    optimizer = tf1.train.AdamOptimizer(0.05)
    train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(input_context=None):
    parts = input_context.num_input_pipelines if input_context else 1
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS))
    if input_context:
        dataset = dataset.shard(parts, input_context.input_pipeline_id)
    return dataset.repeat().batch(4 // parts)


class Weights(tf1.train.SessionRunHook):
    def end(self, session):
        variables = tf1.global_variables("kernel|bias")
        self.values = [value.ravel().tolist() for value in session.run(variables)]


class TellsLosses(LossRecorder):
    """Adds a line to a file at each step: the global step, and the loss."""

    def __init__(self, path):
        self._path = path

    def after_run(self, run_context, run_values):
        super().after_run(run_context, run_values)
        step = run_context.session.run(tf1.train.get_global_step())
        with open(self._path, "a") as file:
            file.write(f"{step} {self.losses[-1]!r}\n")

    def read(self):
        """Step -> loss; of a step that was done again, the last."""
        with open(self._path) as file:
            return {int(step): float(loss) for step, loss in map(str.split, file)}


def train(model_dir, strategy=None, save_every=4, hooks=()):
    config = estimator.RunConfig(
        model_dir=model_dir,
        train_distribute=strategy,
        # The chief saves, logs and summarises at other steps than a worker.
        save_checkpoints_steps=save_every,
        save_summary_steps=3,
        log_step_count_steps=2,
    )
    params = {"number": config.global_id_in_cluster or 0}
    model = estimator.Estimator(model_fn, config=config, params=params)
    losses, weights = LossRecorder(), Weights()
    model.train(input_fn, max_steps=8, hooks=[losses, weights, *hooks])
    flat = [weight for values in weights.values for weight in values]
    print(json.dumps({"losses": losses.losses, "weights": flat}))
