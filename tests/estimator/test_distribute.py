"""train_distribute and eval_distribute: each replica takes the next batch of input_fn."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import numbers
from tests.strategies import mirrored

tf1 = tf.compat.v1


@pytest.fixture
def strategy():
    return mirrored(2)


def model_fn(features, labels, mode):
    """A weight, from 0, whose gradient is minus the mean of the features; counts in metrics."""
    del labels
    weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
    loss = tf.reduce_mean(features)
    predictions = features + weight
    metrics = {
        "mean": tf1.metrics.mean(predictions),
        "rmse": tf1.metrics.root_mean_squared_error(features * 0, predictions),
    }
    train_op = None
    if mode == estimator.ModeKeys.TRAIN:
        optimizer = tf1.train.GradientDescentOptimizer(1.0)
        train_op = optimizer.minimize(-loss * weight, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, predictions, loss, train_op, eval_metric_ops=metrics)


def endless(batch_size=1):
    return lambda: numbers(8, batch_size)().repeat()


def run_config(model_dir, **kwargs):
    return estimator.RunConfig(model_dir=model_dir, **kwargs)


class Runs(tf1.train.SessionRunHook):
    """The global step after each run."""

    def __init__(self):
        self.steps = []

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs([])

    def after_run(self, run_context, run_values):
        self.steps.append(int(run_context.session.run(tf1.train.get_global_step())))


class TestTraining:
    def test_a_step_takes_a_batch_per_replica(self, model_dir, strategy):
        config = run_config(model_dir, train_distribute=strategy)
        model = estimator.Estimator(model_fn, config=config)
        model.train(endless(), steps=3)
        # The means over the replicas of batches (1, 2), (3, 4), (5, 6).
        assert model.get_variable_value("weight") == pytest.approx(1.5 + 3.5 + 5.5)
        assert model.get_variable_value("global_step") == 3

    @pytest.mark.parametrize("replicas", [1, 2])
    def test_both_functions_see_the_strategy_and_predict_does_not(self, model_dir, replicas):
        """(a strategy, across replicas, how many), as TF 1.15 shows them."""
        seen = {}

        def note(function, mode):
            now = tf.distribute
            count = now.get_strategy().num_replicas_in_sync
            seen[function, mode] = (now.has_strategy(), now.in_cross_replica_context(), count)

        def noting_input_fn(mode):
            note("input_fn", mode)
            return numbers(8, 1)()

        def noting_model_fn(features, labels, mode):
            note("model_fn", mode)
            return model_fn(features, labels, mode)

        strategy = mirrored(replicas)
        config = run_config(model_dir, train_distribute=strategy, eval_distribute=strategy)
        model = estimator.Estimator(noting_model_fn, config=config)
        model.train(noting_input_fn, steps=2)
        model.evaluate(noting_input_fn)
        list(model.predict(noting_input_fn))
        for mode in ("train", "eval"):
            assert seen["input_fn", mode] == (True, True, replicas)
            assert seen["model_fn", mode] == (True, False, replicas)
        assert seen["input_fn", "infer"] == seen["model_fn", "infer"] == (False, False, 1)

    def test_the_argument_strategy_is_train_distribute(self, model_dir, strategy):
        model = estimator.Estimator(model_fn, model_dir, strategy=strategy)
        model.train(endless(), steps=1)
        assert model.get_variable_value("weight") == 1.5

    def test_a_strategy_may_come_in_a_distribute_config(self, model_dir, strategy):
        class DistributeConfig:
            train_distribute = strategy
            eval_distribute = strategy
            remote_cluster = None

        config = run_config(model_dir, experimental_distribute=DistributeConfig())
        model = estimator.Estimator(model_fn, config=config)
        model.train(endless(), steps=1)
        assert model.get_variable_value("weight") == 1.5
        assert model.evaluate(numbers(4), steps=1)["loss"] == 1.5


class TestEvaluation:
    def model(self, model_dir, strategy, model_fn=model_fn):
        config = run_config(model_dir, eval_distribute=strategy)
        return estimator.Estimator(model_fn, config=config)

    @pytest.mark.parametrize(("count", "batch_size"), [(8, 2), (6, 2), (5, 2), (7, 1), (3, 4)])
    def test_all_batches_count_once(self, model_dir, strategy, count, batch_size):
        """Whether or not they go evenly into the replicas."""
        results = self.model(model_dir, strategy).evaluate(numbers(count, batch_size))
        values = np.arange(1, count + 1)
        losses = [values[i : i + batch_size].mean() for i in range(0, count, batch_size)]
        assert results["mean"] == pytest.approx(values.mean())
        assert results["rmse"] == pytest.approx(np.sqrt((values**2).mean()))
        assert results["loss"] == pytest.approx(np.mean(losses))

    def test_a_step_is_a_batch_per_replica(self, model_dir, strategy):
        hook = Runs()
        results = self.model(model_dir, strategy).evaluate(numbers(8), steps=2, hooks=[hook])
        assert results["mean"] == 2.5
        assert len(hook.steps) == 2

    def test_all_replicas_have_the_checkpoints_values(self, model_dir, strategy):
        estimator.Estimator(model_fn, model_dir).train(endless(), steps=1)
        results = self.model(model_dir, strategy).evaluate(numbers(4))
        assert results["mean"] == 2.5 + 1.0
        assert results["global_step"] == 1

    def test_metric_objects_are_added_up_too(self, model_dir, strategy):
        def with_object(features, mode):
            spec = model_fn(features, None, mode)
            metric = tf.keras.metrics.Mean()
            metric.update_state(features)
            return spec._replace(eval_metric_ops={"mean": metric})

        assert self.model(model_dir, strategy, with_object).evaluate(numbers(5))["mean"] == 3.0

    def test_each_replica_works_on_a_device_of_its_own(self, model_dir, strategy):
        if not hasattr(estimator.Estimator, "keras_metrics"):
            pytest.skip("looks at variables of ours")
        devices = []

        class Look(tf1.train.SessionRunHook):
            def end(self, session):
                devices.extend(session.state.variable("weight", i).device for i in range(2))

        self.model(model_dir, strategy).evaluate(numbers(4), hooks=[Look()])
        assert [device.rpartition("/")[2] for device in devices] == ["device:CPU:0", "device:CPU:1"]
