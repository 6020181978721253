"""The training loop: steps, hooks, checkpoints, and what is logged of it."""

from __future__ import annotations

import json
import logging
import os

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import payback
from tests.engine.runtime.programs import (
    Steps,
    cores_estimator,
    falling,
    host_estimator,
    numbers,
    ones,
)
from tests.hooks import LossRecorder

tf1 = tf.compat.v1


# Few steps run one by one, many in a loop.
few_or_many = pytest.mark.parametrize("batches", [33, 433])


@pytest.fixture
def in_a_loop(monkeypatch):
    """Few steps run in a loop, too."""
    monkeypatch.setattr(payback, "FEW", payback.VERY_FEW)


class TestCalls:
    def test_model_fn_and_input_fn_are_called_once_per_train(self, model_dir):
        calls = []

        def input_fn():
            calls.append("input")
            return numbers(30)()

        def model_fn(features, labels, mode, params):
            calls.append("model")
            return falling(features, labels, mode, params)

        model = host_estimator(model_dir, model_fn, save_checkpoints_steps=7)
        model.train(input_fn, hooks=[Steps()])
        assert calls == ["input", "model"]

    def test_model_fn_gets_the_very_objects_of_an_input_fn_without_dataset(self, model_dir):
        features = {"x": tf.constant([1.0]), "note": "plain"}
        seen = []

        def model_fn(features, labels, mode, params):
            seen.append(features)
            return falling(tf.constant([1.0]), labels, mode, params)

        host_estimator(model_dir, model_fn).train(lambda: features, steps=1)
        assert seen[0] is features


class TestHooks:
    @pytest.mark.parametrize("steps", [5, 41, 401])
    def test_training_ends_at_the_step_where_every_step_counts_two(self, model_dir, steps):
        """Two optimizers may each count: the original looked after every step."""

        def model_fn(features, labels, mode, params):
            step = tf1.train.get_global_step()
            train_op = tf.group(step.assign_add(1), step.assign_add(1))
            return estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features), train_op=train_op)

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(500), steps=steps)
        assert model.get_variable_value("global_step") == steps + 1

    def test_user_hook_sees_every_step_on_the_host(self, model_dir):
        hook = Steps()
        host_estimator(model_dir).train(numbers(12), hooks=[hook])
        assert hook.seen == list(range(1, 13))

    def test_every_call_of_a_hook_comes_in_the_old_order(self, model_dir):
        calls = []

        class Hook(tf1.train.SessionRunHook):
            def begin(self):
                calls.append("begin")

            def after_create_session(self, session, coord):
                calls.append("after_create_session")

            def before_run(self, run_context):
                calls.append("before_run")

            def after_run(self, run_context, run_values):
                calls.append("after_run")

            def end(self, session):
                calls.append("end")

        host_estimator(model_dir).train(numbers(2), hooks=[Hook()])
        runs = ["before_run", "after_run"] * 2
        # The third run finds no input.
        assert calls == ["begin", "after_create_session", *runs, "before_run", "end"]

    def test_hook_loads_a_variable_and_training_goes_on_from_it(self, model_dir):
        class Load(tf1.train.SessionRunHook):
            def after_run(self, run_context, run_values):
                session = run_context.session
                if session.run(tf1.train.get_global_step()) == 2:
                    tf1.global_variables("weight")[0].load(100.0, session)

        host_estimator(model_dir).train(numbers(3), hooks=[Load()])
        assert host_estimator(model_dir).get_variable_value("weight") == 97.0

    def test_hook_gets_what_it_asks_for_of_the_step(self, model_dir):
        seen = []

        class Loss(tf1.train.SessionRunHook):
            def before_run(self, run_context):
                return tf1.train.SessionRunArgs(tf1.losses.get_losses(loss_collection="losses")[0])

            def after_run(self, run_context, run_values):
                seen.append(float(run_values.results))

        host_estimator(model_dir).train(numbers(3), hooks=[Loss()])
        assert seen == [1.0, 2.0, 3.0]

    def test_hook_stops_training_at_its_step(self, model_dir):
        class Stop(Steps):
            def after_run(self, run_context, run_values):
                super().after_run(run_context, run_values)
                if self.seen[-1] == 3:
                    run_context.request_stop()

        model = host_estimator(model_dir)
        model.train(numbers(10), hooks=[Stop()])
        assert model.get_variable_value("global_step") == 3

    def test_chief_only_hooks_do_not_run_on_another_worker(self, model_dir):
        chief, every = Steps(), Steps()

        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            return spec._replace(training_chief_hooks=[chief], training_hooks=[every])

        model = host_estimator(model_dir, model_fn)
        model._config._is_chief = False  # as TF_CONFIG says to a worker
        model.train(numbers(2))
        assert (chief.seen, every.seen) == ([], [1, 2])
        assert not tf.train.latest_checkpoint(model_dir)

    def test_string_is_no_hook(self, model_dir):
        with pytest.raises(TypeError, match="must be a SessionRunHook"):
            host_estimator(model_dir).train(numbers(2), hooks=["hook"])


class TestNan:
    def nan_at(self, step, batches=33):
        values = np.ones(batches, np.float32)
        values[step - 1] = np.nan
        return lambda: tf.data.Dataset.from_tensor_slices(values).batch(1)

    @few_or_many
    def test_no_step_runs_after_the_one_with_the_first_nan(self, model_dir, log, batches):
        losses = []

        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            note = tf1.py_func(lambda loss: losses.append(float(loss)), [spec.loss], [])
            return spec._replace(train_op=tf.group(spec.train_op, note))

        with pytest.raises(tf1.train.NanLossDuringTrainingError):
            host_estimator(model_dir, model_fn).train(self.nan_at(7, batches))
        assert losses[:6] == [1.0] * 6
        assert len(losses) == 7
        assert "The loss is NaN since step 7." in log(logging.ERROR)

    def test_user_hooks_run_before_nan_is_found(self, model_dir):
        hook = Steps()
        with pytest.raises(tf1.train.NanLossDuringTrainingError):
            host_estimator(model_dir).train(self.nan_at(2), hooks=[hook])
        assert hook.seen == [1, 2]


# Updates of a variable that do not depend on the batch.
UPDATES = {
    "add": lambda count: count.assign_add([1.0]),
    "scatter_add": lambda count: tf1.scatter_add(count, [0], [1.0]),
    "scatter_nd_add": lambda count: tf1.scatter_nd_add(count, [[0]], [1.0]),
    "apply_gradients": lambda count: tf1.train.GradientDescentOptimizer(1.0).apply_gradients(
        [(tf.constant([-1.0]), count)]
    ),
    "cond": lambda count: tf.cond(
        tf1.train.get_global_step() >= 0, lambda: count.assign_add([1.0]), lambda: count + 0.0
    ),
}


class TestEndOfInput:
    @few_or_many
    def test_loss_of_the_last_step_is_logged_when_input_ends_within_a_block(
        self, model_dir, log, batches
    ):
        host_estimator(model_dir).train(numbers(batches))
        assert f"Loss for final step: {batches:.1f}." in log()

    @few_or_many
    def test_steps_before_the_end_are_in_the_checkpoint(self, model_dir, batches):
        model = host_estimator(model_dir)
        model.train(numbers(batches))
        assert model.get_variable_value("global_step") == batches
        assert model.get_variable_value("weight") == -batches * (batches + 1) / 2

    def test_empty_input_makes_a_warning_and_no_step(self, model_dir, log):
        model = host_estimator(model_dir)
        model.train(numbers(0))
        assert any("Training with estimator made no steps" in line for line in log())
        assert model.get_variable_value("global_step") == 0

    @few_or_many
    def test_no_count_of_steps_counts_the_batch_that_is_not_there(self, model_dir, batches):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            counts = {name: tf1.get_variable(name, initializer=[0.0]) for name in UPDATES}
            updates = [UPDATES[name](count) for name, count in counts.items()]
            return spec._replace(train_op=tf.group(spec.train_op, *updates))

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(batches))
        found = {name: float(model.get_variable_value(name)[0]) for name in UPDATES}
        assert found == dict.fromkeys(UPDATES, float(batches))

    def test_last_partial_block_on_cores_counts(self, emulated_cores, model_dir, log):
        emulated_cores(2)

        def ten_batches(params):
            return ones(params).take(10)

        model = cores_estimator(model_dir, iterations=4)
        model.train(ten_batches, steps=100)
        assert model.get_variable_value("global_step") == 10
        assert "Loss for final step: 1.0." in log()


class TestLogging:
    def test_loss_is_logged_at_the_steps_asked_for(self, model_dir, in_a_loop, log):
        host_estimator(model_dir, log_step_count_steps=50).train(numbers(125))
        lines = [line.partition(" (")[0] for line in log() if line.startswith("loss = ")]
        assert lines == [
            "loss = 1.0, step = 0",
            "loss = 51.0, step = 50",
            "loss = 101.0, step = 100",
        ]

    def test_loss_curve_has_the_steps_asked_for(self, model_dir, in_a_loop):
        host_estimator(model_dir, save_summary_steps=50).train(numbers(125))
        (path,) = tf.io.gfile.glob(os.path.join(model_dir, "events*"))
        losses = {
            event.step: value.simple_value
            for event in tf1.train.summary_iterator(path)
            for value in event.summary.value
            if value.tag == "loss"
        }
        assert losses == {1: 1.0, 51: 51.0, 101: 101.0}


class TestCheckpoints:
    def test_first_and_last_step_are_saved_under_relative_paths(self, model_dir):
        host_estimator(model_dir).train(numbers(9), steps=5)
        with open(os.path.join(model_dir, "checkpoint")) as file:
            listed = file.read()
        assert 'all_model_checkpoint_paths: "model.ckpt-0"' in listed
        assert 'all_model_checkpoint_paths: "model.ckpt-5"' in listed

    def test_saving_listeners_hear_of_each_checkpoint(self, model_dir, in_a_loop):
        saved = []

        class Listener(tf1.train.CheckpointSaverListener):
            def after_save(self, session, global_step_value):
                saved.append(int(global_step_value))

        model = host_estimator(model_dir, save_checkpoints_steps=50)
        model.train(numbers(126), saving_listeners=[Listener()])
        assert saved == [0, 50, 100, 126]

    def test_listeners_without_a_saver_are_refused(self, model_dir):
        model = host_estimator(model_dir, save_checkpoints_steps=None, save_checkpoints_secs=None)
        with pytest.raises(ValueError, match="CheckpointSaverHook to use saving_listeners"):
            model.train(numbers(3), saving_listeners=[tf1.train.CheckpointSaverListener()])

    def test_training_goes_on_from_the_latest_checkpoint(self, model_dir):
        hook = Steps()
        host_estimator(model_dir).train(numbers(3))
        host_estimator(model_dir).train(numbers(3), steps=2, hooks=[hook])
        assert hook.seen == [4, 5]

    def test_variables_are_named_as_in_tf1(self, model_dir):
        model = host_estimator(model_dir)
        model.train(numbers(1))
        assert model.get_variable_names() == ["global_step", "weight"]


class TestScaffold:
    def test_init_fn_and_local_init_op_run(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            weight = tf1.global_variables("weight")[0]
            local = tf1.get_variable(
                "local", [], initializer=tf1.zeros_initializer(), collections=["local_variables"]
            )
            with tf.control_dependencies([tf1.local_variables_initializer()]):
                local_init = local.assign(7.0)
            scaffold = tf1.train.Scaffold(
                init_fn=lambda scaffold, session: weight.load(50.0, session),
                local_init_op=local_init.op,
            )
            with tf.control_dependencies([spec.train_op]):
                train_op = weight.assign_add(local)
            return spec._replace(scaffold=scaffold, train_op=train_op)

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(1))
        assert model.get_variable_value("weight") == 50.0 - 1.0 + 7.0

    def test_saver_of_the_scaffold_saves_and_restores(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            names = {"renamed": tf1.global_variables("weight")[0]}
            names["global_step"] = tf1.train.get_global_step()
            scaffold = tf1.train.Scaffold(saver=tf1.train.Saver(names))
            return spec._replace(scaffold=scaffold)

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(2))
        assert model.get_variable_value("renamed") == -3.0
        (first,) = model.predict(numbers(1))
        assert first["sum"] == 1.0 - 3.0


class TestIterationsPerLoop:
    @pytest.mark.parametrize(
        ("iterations", "start", "limit", "seen"),
        [
            (4, 0, {"steps": 8}, [4, 8]),
            (4, 0, {"steps": 10}, [4, 8, 10]),
            (4, 3, {"steps": 10}, [7, 11, 13]),
            (4, 3, {"max_steps": 10}, [7, 10]),
            (40, 0, {"steps": 12}, [12]),
        ],
    )
    def test_hooks_see_the_ends_of_loops(
        self, emulated_cores, model_dir, iterations, start, limit, seen
    ):
        emulated_cores(2)
        if start:
            cores_estimator(model_dir).train(ones, steps=start)
        hook = Steps()
        cores_estimator(model_dir, iterations=iterations).train(ones, hooks=[hook], **limit)
        assert hook.seen == seen

    def test_weights_are_those_of_as_many_single_steps(self, emulated_cores, model_dir):
        emulated_cores(2)
        model = cores_estimator(model_dir)
        model.train(ones, steps=10)
        # CrossShardOptimizer sums over the cores a gradient that it has divided by their number.
        assert model.get_variable_value("weight") == -10.0


class TestWrongArguments:
    @pytest.mark.parametrize("name", ["steps", "max_steps"])
    def test_number_of_steps_must_be_positive(self, model_dir, name):
        with pytest.raises(ValueError, match=f"Must specify {name} > 0"):
            host_estimator(model_dir).train(numbers(2), **{name: 0})

    def test_evaluator_does_not_train(self, model_dir, monkeypatch):
        cluster = {"chief": ["a:1"]}
        task = {"type": "evaluator", "index": 0}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
        with pytest.raises(ValueError, match="train_and_evaluate"):
            host_estimator(model_dir).train(numbers(2))

    def test_input_with_three_parts_is_refused(self, model_dir):
        with pytest.raises(ValueError, match="len 2 tuple"):
            host_estimator(model_dir).train(lambda: (1, 2, 3), steps=1)

    def test_labels_that_model_fn_does_not_take_are_refused(self, model_dir):
        def model_fn(features, mode):
            del features, mode

        model = estimator.Estimator(model_fn, model_dir)
        with pytest.raises(ValueError, match="model_fn does not take labels"):
            model.train(lambda: (tf.constant([1.0]), tf.constant([1.0])), steps=1)


def test_each_host_feeds_its_own_cores(emulated_cores, model_dir):
    """Global batches of 4: host 0 takes two examples of 1.0, host 1 two of 3.0."""
    emulated_cores(2, 2)

    def input_fn(params):
        assert params["batch_size"] == 2
        value = 1.0 + 2.0 * params["context"].current_host
        return tf.data.Dataset.from_tensors(tf.fill([2], value)).repeat()

    recorder = LossRecorder()
    cores_estimator(model_dir).train(input_fn, steps=4, hooks=[recorder])
    assert recorder.losses == [2.0]
    assert tf.train.load_variable(model_dir, "weight") == -2.0 * 4


def test_keras_layers_have_the_same_names_in_each_mode(model_dir):
    """They are counted by recording: those of a checkpoint are those of the next call."""

    def model_fn(features, labels, mode, params):
        del labels, params
        outputs = keras.layers.Dense(1)(keras.layers.Dense(2)(features[:, None]))
        if mode == estimator.ModeKeys.PREDICT:
            return estimator.EstimatorSpec(mode, predictions=outputs)
        loss = tf.reduce_mean(outputs**2)
        step = tf1.train.get_global_step()
        train_op = tf1.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(2))
    assert {"dense/kernel", "dense_1/kernel"} <= set(model.get_variable_names())
    assert model.evaluate(numbers(1))["global_step"] == 2
    assert next(model.predict(numbers(1))).shape == (1,)
