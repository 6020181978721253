"""Evaluation: which weights, how many batches, what hooks see, what the results hold."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import (
    Steps,
    cores_estimator,
    falling,
    host_estimator,
    numbers,
    ones,
)

tf1 = tf.compat.v1


class Runs(tf1.train.SessionRunHook):
    """Counts the calls of before_run."""

    def __init__(self):
        self.count = 0

    def before_run(self, run_context):
        self.count += 1


def with_metric(name, metric):
    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        return spec._replace(eval_metric_ops={name: metric(features)})

    return model_fn


def test_result_is_the_mean_loss_and_the_step_of_the_checkpoint(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(5))
    assert model.evaluate(numbers(4)) == {"loss": 2.5, "global_step": 5}


def test_steps_limits_the_batches(model_dir):
    assert host_estimator(model_dir).evaluate(numbers(10), steps=3)["loss"] == 2.0


def test_without_checkpoint_the_initial_values_are_evaluated(model_dir):
    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        weight = tf1.global_variables("weight")[0]
        return spec._replace(loss=weight + 3.0)

    result = host_estimator(model_dir, model_fn).evaluate(numbers(2), steps=1)
    assert result == {"loss": 3.0, "global_step": 0}


def test_checkpoint_path_chooses_the_checkpoint(model_dir):
    model = host_estimator(model_dir, save_checkpoints_steps=2)
    model.train(numbers(5))
    result = model.evaluate(numbers(1), checkpoint_path=f"{model_dir}/model.ckpt-2")
    assert result["global_step"] == 2


def test_hook_runs_once_per_batch_on_the_host(model_dir):
    hook = Runs()
    host_estimator(model_dir).evaluate(numbers(10), steps=6, hooks=[hook])
    assert hook.count == 6


def test_hook_runs_once_for_all_batches_on_cores(emulated_cores, model_dir):
    emulated_cores(2)
    model = cores_estimator(model_dir)
    model.train(ones, steps=1)
    hook = Runs()
    model.evaluate(ones, steps=6, hooks=[hook])
    assert hook.count == 1


def test_hook_reads_the_global_step(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(3))
    hook = Steps()
    model.evaluate(numbers(2), hooks=[hook])
    assert hook.seen == [3, 3]


def test_scaffold_saver_restores_for_evaluation(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(3))

    def model_fn(features, labels, mode, params):
        weight = tf1.get_variable("other", [], initializer=tf1.zeros_initializer())
        saver = tf1.train.Saver({"weight": weight, "global_step": tf1.train.get_global_step()})
        return estimator.EstimatorSpec(
            mode, loss=tf.identity(weight), scaffold=tf1.train.Scaffold(saver=saver)
        )

    assert host_estimator(model_dir, model_fn).evaluate(numbers(1), steps=1)["loss"] == -6.0


def test_metric_called_global_step_is_refused(model_dir):
    model = host_estimator(model_dir, with_metric("global_step", tf1.metrics.mean))
    with pytest.raises(ValueError, match="Metric with name `global_step` is not allowed"):
        model.evaluate(numbers(2))


@pytest.mark.parametrize("steps", [0, -1])
def test_number_of_batches_must_be_positive(model_dir, steps):
    with pytest.raises(ValueError, match="Must specify steps > 0"):
        host_estimator(model_dir).evaluate(numbers(2), steps=steps)


def test_a_metric_of_a_program_does_not_count_the_batch_that_is_not_there(model_dir):
    def at_most_half(features):
        # What is counted does not depend on the batch's values, only on its size.
        value, update = tf1.metrics.mean(features, weights=1.0 * tf.ones_like(features))
        return tf.minimum(value, 5.0), tf.minimum(update, 5.0)

    model = host_estimator(model_dir, with_metric("mean", at_most_half))

    def input_fn():
        return tf.data.Dataset.from_tensors([1.0, 2.0, 3.0]).repeat(2)

    assert model.evaluate(input_fn)["mean"] == 2.0


@pytest.mark.oldest
def test_a_reference_variable_of_no_certain_shape_grows_with_the_batches(model_dir):
    def seen(features):
        kept = tf1.get_local_variable(
            "seen", initializer=tf.zeros([0]), validate_shape=False, use_resource=False
        )
        assert kept.shape.rank is None
        update = tf1.assign(kept, tf.concat([kept, features], 0), validate_shape=False)
        return tf.size(kept), update

    model = host_estimator(model_dir, model_fn=with_metric("examples", seen))
    assert model.evaluate(numbers(3))["examples"] == 3
