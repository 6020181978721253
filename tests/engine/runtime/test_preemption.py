"""A session that is lost on the host, where no TPU has to be started again."""

from __future__ import annotations

import logging

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime.preemption import Recovery
from estimator2strategy.errors import DeviceError

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
    del labels
    weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
    loss = tf.reduce_mean(features)
    step = tf1.train.get_global_step()
    train_op = tf.group(weight.assign(weight * 0.5 + loss), step.assign_add(1))
    metrics = {"mean": tf1.metrics.mean(features)}
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn():
    return tf.data.Dataset.range(1, 100).map(lambda x: tf.cast(x, tf.float32)).batch(1)


class Failing(tf1.train.SessionRunHook):
    """Loses the session after some runs, once each; notes which runs there were."""

    def __init__(self, *at: int):
        self._at, self.runs = list(at), 0

    def after_run(self, run_context, run_values):
        self.runs += 1
        if self.runs in self._at:
            raise tf.errors.UnavailableError(None, None, "Connection reset")


def make(folder):
    config = estimator.RunConfig(str(folder), save_checkpoints_steps=5)
    return estimator.Estimator(model_fn, config=config)


def test_training_goes_on_from_the_checkpoint_with_its_input(tmp_path, log):
    undisturbed, disturbed = make(tmp_path / "undisturbed"), make(tmp_path / "disturbed")
    undisturbed.train(input_fn, max_steps=12)
    hook = Failing(7, 11)  # at step 7, and on the way from 5 at step 9
    disturbed.train(input_fn, max_steps=12, hooks=[hook])
    assert hook.runs == 7 + 4 + 7
    weight = disturbed.get_variable_value("weight")
    assert weight == undisturbed.get_variable_value("weight")
    said = [line for line in log(logging.WARNING) if line.startswith("A run failed")]
    assert len(said) == 2
    assert "model.ckpt-5; restart 1 of at most 10" in said[0]


def test_an_evaluation_counts_each_batch_once(tmp_path):
    model = make(tmp_path)
    model.train(input_fn, max_steps=1)
    results = model.evaluate(input_fn, steps=5, hooks=[Failing(3)])
    assert results["mean"] == 3


def test_tries_are_counted_from_the_furthest_place():
    recovery = Recovery(None, most=2)
    for _ in range(2):
        recovery.start_again()
    recovery.got_to(5)
    for _ in range(2):
        recovery.start_again()
        recovery.got_to(4)
    recovery.error = tf.errors.AbortedError(None, None, "gone")
    with pytest.raises(DeviceError, match="3 times in a row without getting any further: Aborted"):
        recovery.start_again()
