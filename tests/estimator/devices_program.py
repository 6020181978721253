"""A program for any number of processes and devices; all deal out the same global batches.

    python devices_program.py FOLDER DEVICES

DEVICES are the logical CPUs of each process; with 0 it trains on one device, without a strategy.
Prints a line of JSON: what came of it in this process.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.errors import UnsupportedError
from tests import strategies
from tests.hooks import LossRecorder

tf1 = tf.compat.v1

GLOBAL_BATCH, STEPS = 8, 6
FEATURES = np.random.RandomState(0).randn(40, 5).astype("float32")
LABELS = (FEATURES[:, :1] > 0).astype("float32")


def dense(values, units, name, start):
    kernel = tf1.get_variable(f"{name}/kernel", [values.shape[1], units], initializer=start)
    bias = tf1.get_variable(f"{name}/bias", [units], initializer=tf1.zeros_initializer())
    return tf.matmul(values, kernel) + bias


def model_fn(features, labels, mode, params):
    # Each process would start from another value.
    start = tf1.constant_initializer(0.1 + params["number"])
    hidden = tf.tanh(dense(features, 6, "hidden", start))
    if mode == estimator.ModeKeys.TRAIN and params["dropout"]:
        hidden = tf1.nn.dropout(hidden, rate=params["dropout"], seed=5)
    tf1.summary.histogram("hidden", hidden)  # which the chief fetches, from inside of a device
    logits = dense(hidden, 1, "logits", start)
    if mode == estimator.ModeKeys.PREDICT:
        return estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf1.losses.sigmoid_cross_entropy(labels, logits)
    step = tf1.train.get_global_step()
    # As a batch norm's: no optimizer touches it.
    seen = tf1.get_variable("seen", [], initializer=tf1.zeros_initializer(), trainable=False)
    with tf.control_dependencies([seen.assign(tf.reduce_mean(features))]):
        train_op = tf1.train.AdamOptimizer(0.05).minimize(loss, step)
    with tf.control_dependencies([train_op]):
        tf1.add_to_collection("late", tf.multiply(loss, 2.0))
    accuracy = tf1.metrics.accuracy(labels, tf.round(tf.sigmoid(logits)))
    return estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy}
    )


def input_fn(params, input_context=None):
    """Batches of one replica: replica number g of R takes number g, g + R, ... of all."""
    processes = input_context.num_input_pipelines if input_context else 1
    number = input_context.input_pipeline_id if input_context else 0
    replicas = processes * params["devices"]
    if input_context:
        assert input_context.num_replicas_in_sync == replicas
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).repeat()
    dataset = dataset.batch(GLOBAL_BATCH // replicas, drop_remainder=True)
    return dataset.batch(params["devices"]).shard(processes, number).unbatch()


def everything(params=None):
    return tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).batch(16)


class OwnLosses(LossRecorder):
    """The losses of the first replica of this process."""

    def begin(self):
        super().begin()
        self._loss = tf1.get_collection(tf1.GraphKeys.LOSSES)[0]


class LateLosses(LossRecorder):
    """The double of `OwnLosses`, which is computed once the train op has summed and applied."""

    def begin(self):
        super().begin()
        (self._loss,) = tf1.get_collection("late")


class Weights(tf1.train.SessionRunHook):
    """The weights at the end, as each of this process's devices has them."""

    def end(self, session):
        state = session.state
        names = [variable.op.name for variable in tf1.trainable_variables()]
        with modern_world():
            self.of_devices = [
                [state.variable(name, device).numpy().ravel().tolist() for name in names]
                for device in range(state.num_replicas)
            ]


def refusal(model, strategy):
    """What is said where all processes are to evaluate together."""
    config = model.config.replace(eval_distribute=strategy)
    together = estimator.Estimator(model_fn, config=config, params=model.params)
    try:
        together.evaluate(everything)
    except UnsupportedError as error:
        return str(error)


def train(folder, devices, dropout):
    strategy = strategy_of(devices)
    config = estimator.RunConfig(
        folder,
        tf_random_seed=1,
        train_distribute=strategy,
        # The chief saves, logs and summarises at other steps than a worker.
        save_checkpoints_steps=4,
        save_summary_steps=3,
        log_step_count_steps=2,
    )
    params = {
        "number": config.global_id_in_cluster or 0,
        "devices": devices or 1,
        "dropout": dropout,
    }
    model = estimator.Estimator(model_fn, config=config, params=params)
    losses, own, late, weights = LossRecorder(), OwnLosses(), LateLosses(), Weights()
    model.train(input_fn, max_steps=STEPS, hooks=[losses, own, late, weights])
    again = LossRecorder()
    model.train(input_fn, steps=1, hooks=[again])
    found = {"losses": losses.losses, "own": own.losses, "again": again.losses}
    found["late"] = late.losses
    found["weights"] = weights.of_devices
    found["refused"] = refusal(model, strategy)
    # Which is there: the chief has saved it before all began to train again.
    of_six = model.predict(everything, checkpoint_path=f"{folder}/model.ckpt-{STEPS}")
    found["predictions"] = [float(each["logits"][0]) for each in of_six]
    if config.is_chief:
        found["accuracy"] = float(model.evaluate(everything)["accuracy"])
    return found


_strategies = {}


def strategy_of(devices):
    if devices and devices not in _strategies:
        _strategies[devices] = strategies.over_processes(devices)
    return _strategies.get(devices)


if __name__ == "__main__":
    folder, devices = sys.argv[1], int(sys.argv[2])
    strategy_of(devices)
    print(
        json.dumps(
            {
                "plain": train(f"{folder}/plain", devices, dropout=0.0),
                "dropout": train(f"{folder}/dropout", devices, dropout=0.4),
            }
        )
    )
