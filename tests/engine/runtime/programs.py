"""Legacy programs whose numbers can be told by hand.

`falling` has one weight, which starts at 0 and falls by the batch's mean at each step; its loss in
training is that mean. So the losses of a run are its inputs, and the weight is minus their sum.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from estimator2strategy import estimator

tf1 = tf.compat.v1
tpu = estimator.tpu


def falling(features, labels, mode, params):
    """model_fn of Estimator and of TPUEstimator on the host."""
    del labels, params
    weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
    mean = tf.reduce_mean(features)
    if mode == estimator.ModeKeys.PREDICT:
        return estimator.EstimatorSpec(mode, predictions={"sum": features + weight})
    step = tf1.train.get_global_step()
    train_op = tf.group(weight.assign_sub(mean), step.assign_add(1))
    return estimator.EstimatorSpec(mode, loss=mean, train_op=train_op)


def falling_on_cores(features, labels, mode, params):
    """model_fn of TPUEstimator; the weight falls by the mean over all cores."""
    del labels
    weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
    mean = tf.reduce_mean(features)
    if mode == estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"sum": features + weight})
    optimizer = tf1.train.GradientDescentOptimizer(1.0)
    if params["use_tpu"]:
        optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(weight * mean, global_step=tf1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=mean, train_op=train_op)


def numbers(count, batch_size=1):
    """input_fn: batches of 1.0, 2.0, ... `count`."""

    def input_fn():
        values = np.arange(1, count + 1, dtype=np.float32)
        return tf.data.Dataset.from_tensor_slices(values).batch(batch_size)

    return input_fn


def ones(params):
    """input_fn of TPUEstimator: batches of 1.0 without end."""
    size = params["batch_size"]
    return tf.data.Dataset.from_tensors(tf.ones([])).repeat().batch(size, drop_remainder=True)


class Steps(tf1.train.SessionRunHook):
    """A user's hook: what the session says is the global step, after each run."""

    def __init__(self):
        self.seen = []

    def after_run(self, run_context, run_values):
        del run_values
        self.seen.append(int(run_context.session.run(tf1.train.get_global_step())))


def host_estimator(model_dir, model_fn=falling, params=None, **config):
    run_config = estimator.RunConfig(model_dir=model_dir, **config)
    return estimator.Estimator(model_fn, config=run_config, params=params or {})


def with_checkpoints(model_dir, steps):
    """An estimator that was trained for so many steps, with checkpoints at 0, 2, 4 and so on."""
    return host_estimator(model_dir, save_checkpoints_steps=2).train(numbers(steps))


def cores_estimator(
    model_dir,
    model_fn=falling_on_cores,
    iterations=4,
    pipeline=None,
    session_config=None,
    **kwargs,
):
    """A TPUEstimator on two cores, with global batches of 4."""
    run_config = tpu.RunConfig(
        model_dir=model_dir,
        session_config=session_config,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=iterations,
            num_shards=2,
            per_host_input_for_training=pipeline or tpu.InputPipelineConfig.PER_HOST_V1,
        ),
    )
    sizes = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}
    return tpu.TPUEstimator(model_fn, config=run_config, **{**sizes, **kwargs})
