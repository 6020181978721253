"""Monitors of `tf.contrib.learn` watch a training as in TF 1.15, where these numbers are from."""

from __future__ import annotations

import numpy as np
import pytest

import estimator2strategy.tf1 as tf
from estimator2strategy.errors import UnsupportedError

learn = tf.contrib.learn
monitors = learn.monitors


def model_fn(features, labels, mode):
    """A weight that grows by 1 a step; its loss in an evaluation is least at 10."""
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = -weight
    if mode == learn.ModeKeys.EVAL:
        loss = tf.abs(weight - 10.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return learn.ModelFnOps(mode, {"weight": weight[None] + 0 * features["x"][0]}, loss, train_op)


def input_fn():
    return {"x": tf.constant([[1.0], [2.0]])}, tf.constant([[0.0], [1.0]])


@pytest.fixture
def program(model_dir):
    config = learn.RunConfig(save_checkpoints_steps=5, save_checkpoints_secs=None)
    return learn.Estimator(model_fn, model_dir, config)


def validation(**more):
    given = {"input_fn": input_fn, "eval_steps": 1, "every_n_steps": 5, "check_interval_secs": None}
    return monitors.ValidationMonitor(**{**given, **more})


def test_a_validation_monitor_ends_a_training_that_gets_no_better(program):
    monitor = validation(early_stopping_rounds=10)
    program.fit(input_fn=input_fn, steps=100, monitors=[monitor])
    assert monitor.early_stopped
    found = (monitor.best_step, monitor.best_value, monitor.best_metrics["loss"])
    steps = program.get_variable_value("global_step")
    assert (found, steps) == ((10, 0.0, 0.0), 20)


def test_a_validation_monitor_looks_at_another_metric_the_other_way(program):
    monitor = validation(
        early_stopping_rounds=5,
        early_stopping_metric="weight",
        early_stopping_metric_minimize=False,
        metrics={("weight", "weight"): lambda predictions, labels: tf.metrics.mean(-predictions)},
    )
    program.fit(input_fn=input_fn, steps=100, monitors=[monitor])
    assert (monitor.best_step, program.get_variable_value("global_step")) == (5, 10)


def test_a_metric_that_is_missing_is_named(program):
    monitor = validation(early_stopping_rounds=5, early_stopping_metric="auc")
    with pytest.raises(ValueError, match="Metric auc missing from outputs"):
        program.fit(input_fn=input_fn, steps=20, monitors=[monitor])


def test_an_estimator_of_today_is_validated_on_an_input_fn_alone(model_dir):
    def of_today(features, labels, mode):
        ops = model_fn(features, labels, mode)
        return tf.estimator.EstimatorSpec(mode, ops.predictions, ops.loss, ops.train_op)

    config = tf.estimator.RunConfig(save_checkpoints_steps=5)
    model = tf.estimator.Estimator(of_today, model_dir, config)
    monitor = validation(early_stopping_rounds=10)
    model.train(input_fn, monitors.replace_monitors_with_hooks([monitor], model), steps=100)
    assert monitor.early_stopped
    other = validation(x=np.ones([2, 1]), input_fn=None)
    with pytest.raises(ValueError, match="does not support following arguments: x, y"):
        model.train(input_fn, monitors.replace_monitors_with_hooks([other], model), steps=10)
    with pytest.raises(ValueError, match="Either x or input_fn"):
        monitors.ValidationMonitor()


class Noted(monitors.EveryN):
    """A monitor of a program: what it was called with."""

    def __init__(self, every_n_steps, first_n_steps):
        super().__init__(every_n_steps, first_n_steps)
        self.steps, self.after, self.losses = [], [], []

    def every_n_step_begin(self, step):
        self.steps.append(step)
        return ["weight", "global_step:0"]

    def every_n_step_end(self, step, outputs):
        assert outputs["global_step:0"] in (step - 1, step)
        self.losses.append(float(outputs["weight"]))

    def every_n_post_step(self, step, session):
        self.after.append((step, float(session.run("weight:0"))))


def test_a_monitor_of_a_program_is_called_every_so_many_steps(program):
    monitor = Noted(3, 2)
    program.fit(input_fn=input_fn, steps=9, monitors=[monitor])
    assert monitor.steps == [1, 2, 5, 8]
    assert monitor.losses == [1.0, 2.0, 5.0, 8.0]
    assert monitor.after == [(1, 1.0), (2, 2.0), (5, 5.0), (8, 8.0), (9, 9.0)]


def test_a_monitor_may_end_a_training(program):
    program.fit(input_fn=input_fn, steps=9, monitors=[monitors.StopAtStep(num_steps=4)])
    assert program.get_variable_value("global_step") == 4
    program.fit(input_fn=input_fn, steps=9, monitors=[monitors.StopAtStep(last_step=6)])
    assert program.get_variable_value("global_step") == 6
    with pytest.raises(ValueError, match="One of num_steps or last_step"):
        monitors.StopAtStep()
    with pytest.raises(ValueError, match="Only one of num_steps or last_step"):
        monitors.StopAtStep(1, 2)


def test_values_are_kept_and_logged(program, caplog):
    kept = monitors.CaptureVariable("weight:0", every_n=2)
    logged = monitors.PrintTensor({"w": "weight:0"}, every_n=2)
    variables = monitors.LoggingTrainable(every_n=4)
    caplog.set_level("INFO", logger="tensorflow")
    program.fit(input_fn=input_fn, steps=5, monitors=[kept, logged, variables])
    assert list(kept.values) == [1, 3, 5]
    said = caplog.text
    assert "Step 3: w = " in said
    assert "Logging Trainable: Step 5: weight:0 = " in said


def test_a_loss_that_is_nan_ends_a_training(model_dir):
    def diverging(features, labels, mode):
        ops = model_fn(features, labels, mode)
        loss = tf.identity(ops.loss * float("nan"), "nan")
        return learn.ModelFnOps(mode, ops.predictions, ops.loss, tf.group(ops.train_op, loss))

    class OfTheLoss(tf.train.SessionRunHook):
        """Makes the monitor when there is a graph, as model_fns did."""

        def __init__(self, **given):
            self.given = given

        def begin(self):
            loss = tf.get_default_graph().get_tensor_by_name("nan:0")
            monitor = monitors.NanLoss(loss, every_n_steps=1, **self.given)
            self.hook = monitors.RunHookAdapterForMonitors([monitor])
            self.hook.begin()

        def before_run(self, run_context):
            return self.hook.before_run(run_context)

        def after_run(self, run_context, run_values):
            self.hook.after_run(run_context, run_values)

    model = learn.Estimator(diverging, model_dir)
    model.fit(input_fn=input_fn, steps=5, monitors=[OfTheLoss(fail_on_nan_loss=False)])
    assert model.get_variable_value("global_step") == 1
    with pytest.raises(monitors.NanLossDuringTrainingError, match="NaN loss during training"):
        model.fit(input_fn=input_fn, steps=5, monitors=[OfTheLoss()])


def test_checkpoints_and_summaries_are_written(program, model_dir, tmp_path):
    class Saving(tf.train.SessionRunHook):
        def begin(self):
            summary = tf.summary.scalar("seen", tf.train.get_global_step())
            made = [
                monitors.CheckpointSaver(
                    str(tmp_path / "own"), save_steps=2, saver=tf.train.Saver()
                ),
                monitors.SummarySaver(summary, 2, str(tmp_path / "events")),
                monitors.StepCounter(2, str(tmp_path / "events")),
            ]
            self.hook = monitors.RunHookAdapterForMonitors(made)
            self.hook.begin()

        def before_run(self, run_context):
            return self.hook.before_run(run_context)

        def after_run(self, run_context, run_values):
            self.hook.after_run(run_context, run_values)

        def end(self, session):
            self.hook.end(session)

    program.fit(input_fn=input_fn, steps=6, monitors=[Saving()])
    state = tf.train.get_checkpoint_state(str(tmp_path / "own"))
    steps = [int(path.rpartition("-")[2]) for path in state.all_model_checkpoint_paths]
    (events,) = (tmp_path / "events").iterdir()
    tags = [
        value.tag
        for event in tf.train.summary_iterator(str(events))
        for value in event.summary.value
    ]
    assert steps == [1, 3, 5, 6]
    assert (tags.count("seen"), "global_step/sec" in tags) == (3, True)
    for given, message in [
        ({}, "Either save_steps or save_secs"),
        ({"save_secs": 1, "save_steps": 1}, "both"),
    ]:
        with pytest.raises(ValueError, match=message):
            monitors.CheckpointSaver(model_dir, **given)


def test_hooks_among_monitors_stay_as_they_are(program):
    hook, monitor = tf.train.SessionRunHook(), monitors.StopAtStep(1)
    found = monitors.replace_monitors_with_hooks([monitor, hook], program)
    assert found[0] is hook
    assert isinstance(found[1], monitors.RunHookAdapterForMonitors)
    assert monitors.replace_monitors_with_hooks(None, program) == []


def test_what_is_left_out_says_what_to_do_instead():
    with pytest.raises(UnsupportedError, match=r"ExportMonitor .*export_savedmodel"):
        monitors.ExportMonitor(5, "folder")
