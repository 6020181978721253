"""Hooks: the whole life cycle, what a run can be asked for, and TensorFlow's own, unchanged."""

from __future__ import annotations

import glob
import json
import logging
import os

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import (
    cores_estimator,
    falling,
    host_estimator,
    numbers,
    ones,
)

tf1 = tf.compat.v1
SessionRunArgs = tf1.train.SessionRunArgs


class Asking(tf1.train.SessionRunHook):
    """Asks every run for what `args` makes, and keeps what it gets."""

    def __init__(self, args):
        self._args = args
        self.results = []

    def begin(self):
        self.graph = tf1.get_default_graph()

    def before_run(self, run_context):
        return self._args(self.graph)

    def after_run(self, run_context, run_values):
        self.results.append(run_values.results)


def logged(hook_lines):
    return lambda values: hook_lines.append({k: float(v) for k, v in values.items()})


def events(folder):
    """(step, tag, value) of each scalar in a folder's event files."""
    return [
        (event.step, value.tag, value.simple_value)
        for path in sorted(glob.glob(os.path.join(folder, "events*")))
        for event in tf1.train.summary_iterator(path)
        for value in event.summary.value
        if value.HasField("simple_value")
    ]


class TestWhatARunIsAskedFor:
    def test_fetches_are_nested_tensors_names_ops_and_variables(self, model_dir):
        def args(graph):
            loss = graph.get_tensor_by_name("Mean:0")
            (weight,) = tf1.global_variables("weight")
            step = graph.get_operation_by_name("global_step")
            return SessionRunArgs(
                {"pair": (loss, "Mean:0"), "list": [weight], "op": step, "by_op": "Mean"}
            )

        hook = Asking(args)
        host_estimator(model_dir).train(numbers(2), hooks=[hook])
        first, second = hook.results
        assert first["pair"] == (1.0, 1.0)
        assert second["pair"] == (2.0, 2.0)
        assert (first["op"], first["by_op"]) == (None, None)
        assert first["list"][0].shape == ()

    def test_the_name_of_a_variable_is_its_value(self, model_dir):
        hook = Asking(lambda graph: SessionRunArgs(["weight:0", "global_step:0"]))
        host_estimator(model_dir).train(numbers(2), hooks=[hook])
        assert hook.results == [[0.0, 0], [-1.0, 1]]

    def test_feed_dict_replaces_a_tensor_of_the_step(self, model_dir):
        hook = Asking(lambda graph: SessionRunArgs("Mean:0", feed_dict={"Mean:0": 5.0}))
        model = host_estimator(model_dir)
        model.train(numbers(3), hooks=[hook], steps=3)
        assert hook.results == [5.0, 5.0, 5.0]
        assert model.get_variable_value("weight") == -15.0

    def test_two_hooks_cannot_feed_the_same_tensor(self, model_dir):
        hooks = [
            Asking(
                lambda graph: SessionRunArgs(
                    [], feed_dict={graph.get_tensor_by_name("Mean:0"): 5.0}
                )
            )
            for _ in range(2)
        ]
        with pytest.raises(RuntimeError, match="Same tensor is fed by two hooks"):
            host_estimator(model_dir).train(numbers(3), hooks=hooks, steps=1)

    def test_original_args_are_the_train_op_and_the_loss(self, model_dir):
        seen = []

        class Hook(tf1.train.SessionRunHook):
            def before_run(self, run_context):
                seen.append(run_context.original_args)

        every = tf1.train.LoggingTensorHook(["Mean:0"], every_n_iter=1)
        host_estimator(model_dir).train(numbers(1), hooks=[Hook(), every])
        op, loss = seen[0].fetches
        assert op.name == "group_deps"
        assert loss.name == "Mean:0"

    def test_session_of_the_context_runs_any_part_of_the_graph(self, model_dir):
        seen = []

        class Hook(tf1.train.SessionRunHook):
            def begin(self):
                self.double = 2 * tf1.global_variables("weight")[0]

            def after_run(self, run_context, run_values):
                session = run_context.session
                seen.append(
                    (float(session.run(self.double)), float(self.double.eval(session=session)))
                )

        host_estimator(model_dir).train(numbers(2), hooks=[Hook()])
        assert seen == [(-2.0, -2.0), (-6.0, -6.0)]

    def test_begin_may_add_to_the_graph_and_later_calls_may_not(self, model_dir):
        class Hook(tf1.train.SessionRunHook):
            def begin(self):
                tf.constant(1)

            def after_create_session(self, session, coord):
                with pytest.raises(RuntimeError, match="finalized"):
                    tf.constant(1)

        host_estimator(model_dir).train(numbers(1), hooks=[Hook()])

    def test_end_is_not_called_after_an_error(self, model_dir):
        calls = []

        class Hook(tf1.train.SessionRunHook):
            def after_run(self, run_context, run_values):
                raise KeyError("the user's")

            def end(self, session):
                calls.append("end")

        with pytest.raises(KeyError, match="the user's"):
            host_estimator(model_dir).train(numbers(2), hooks=[Hook()])
        assert calls == []

    def test_run_metadata_of_a_traced_run_tells_which_ops_ran(self, model_dir):
        names = []

        class Hook(tf1.train.SessionRunHook):
            def before_run(self, run_context):
                return SessionRunArgs(
                    [], options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
                )

            def after_run(self, run_context, run_values):
                stats = run_values.run_metadata.step_stats.dev_stats
                names.extend(node.node_name for dev in stats for node in dev.node_stats)

        host_estimator(model_dir).train(numbers(1), hooks=[Hook()])
        assert "Mean" in names

    def test_other_run_options_are_named_in_a_warning(self, model_dir, caplog, monkeypatch):
        monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)
        options = tf1.RunOptions(timeout_in_ms=60_000)
        hook = Asking(lambda graph: SessionRunArgs("Mean:0", options=options))
        host_estimator(model_dir).train(numbers(3), hooks=[hook])
        assert caplog.text.count("RunOptions.timeout_in_ms has no effect") == 1


class TestStockHooks:
    def test_checkpoint_saver_replaces_the_default_one(self, model_dir):
        saver = tf1.train.CheckpointSaverHook(model_dir, save_steps=4)
        host_estimator(model_dir, save_checkpoints_steps=2).train(
            numbers(11), hooks=[saver], steps=10
        )
        saved = tf.train.get_checkpoint_state(model_dir).all_model_checkpoint_paths
        assert [os.path.basename(path) for path in saved] == [
            f"model.ckpt-{step}" for step in (0, 4, 8, 10)
        ]

    def test_what_a_branch_summarizes_is_left_out_and_said(self, model_dir, caplog):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            tf1.summary.scalar("outside", spec.loss)

            def summarized():
                tf1.summary.scalar("inside", spec.loss)
                return spec.loss

            tf.cond(spec.loss > 0, summarized, lambda: spec.loss)
            return spec

        with caplog.at_level(logging.WARNING, "tensorflow"):
            host_estimator(model_dir, model_fn).train(numbers(1))
        assert "in a branch of tf.cond or in a loop: summaries inside." in caplog.text
        tags = {tag for _, tag, _ in events(model_dir)}
        assert "outside" in tags
        assert "inside" not in tags

    def test_summary_saver_writes_its_own_op_at_its_steps(self, model_dir, tmp_path):
        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            summary = tf1.summary.scalar("mine", spec.loss, collections=[])
            hook = tf1.train.SummarySaverHook(
                save_steps=3, output_dir=str(tmp_path / "mine"), summary_op=summary
            )
            return spec._replace(training_hooks=[hook])

        host_estimator(model_dir, model_fn).train(numbers(8))
        tf1.summary.FileWriterCache.clear()
        assert events(tmp_path / "mine") == [(1, "mine", 1.0), (4, "mine", 4.0), (7, "mine", 7.0)]

    def test_step_counter_writes_a_rate_at_its_steps(self, model_dir, tmp_path):
        counter = tf1.train.StepCounterHook(every_n_steps=3, output_dir=str(tmp_path / "mine"))
        host_estimator(model_dir).train(numbers(10), hooks=[counter])
        tf1.summary.FileWriterCache.clear()
        assert [(step, tag) for step, tag, _ in events(tmp_path / "mine")] == [
            (4, "global_step/sec"),
            (7, "global_step/sec"),
            (10, "global_step/sec"),
        ]

    def test_logging_tensor_takes_names_and_a_formatter(self, model_dir):
        lines = []
        hook = tf1.train.LoggingTensorHook({"l": "Mean:0"}, every_n_iter=4, formatter=logged(lines))
        host_estimator(model_dir).train(numbers(10), hooks=[hook])
        assert lines == [{"l": 1.0}, {"l": 5.0}, {"l": 9.0}]

    def test_logging_tensor_at_the_end_only(self, model_dir):
        lines = []
        hook = tf1.train.LoggingTensorHook(
            {"step": "global_step/Read/ReadVariableOp:0"}, at_end=True, formatter=logged(lines)
        )
        host_estimator(model_dir).train(numbers(10), steps=6, hooks=[hook])
        assert lines == [{"step": 6.0}]

    def test_logging_tensor_by_seconds(self, model_dir):
        lines = []
        hook = tf1.train.LoggingTensorHook(
            {"l": "Mean:0"}, every_n_secs=1e-9, formatter=logged(lines)
        )
        host_estimator(model_dir).train(numbers(5), hooks=[hook])
        assert lines[0] == {"l": 1.0}

    def test_earlier_of_two_stops_wins(self, model_dir):
        hooks = [tf1.train.StopAtStepHook(last_step=4), tf1.train.StopAtStepHook(num_steps=7)]
        model = host_estimator(model_dir)
        model.train(numbers(20), hooks=hooks, steps=6)
        assert model.get_variable_value("global_step") == 4

    def test_nan_tensor_stops_quietly_where_it_is_told_to(self, model_dir):
        hooks = []

        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            other = tf.where(tf.equal(spec.loss, 4.0), np.nan, spec.loss)
            hooks.append(tf1.train.NanTensorHook(other, fail_on_nan_loss=False))
            return spec._replace(training_hooks=hooks)

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(20))
        assert model.get_variable_value("global_step") == 4

    def test_feed_fn_feeds_every_step(self, model_dir):
        fed = iter(range(10, 20))
        hooks = []

        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            hooks.append(tf1.train.FeedFnHook(lambda: {spec.loss: next(fed)}))
            return spec._replace(training_hooks=hooks)

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(3), steps=3)
        assert model.get_variable_value("weight") == -10.0 - 11.0 - 12.0

    def test_final_ops_are_run_at_the_end_with_their_feeds(self, model_dir):
        hooks = []

        def model_fn(features, labels, mode, params):
            spec = falling(features, labels, mode, params)
            fed = tf1.placeholder(tf.float32, [])
            final = {"sum": tf1.global_variables("weight")[0] + fed}
            hooks.append(tf1.train.FinalOpsHook(final, final_ops_feed_dict={fed: 0.5}))
            return spec._replace(training_hooks=hooks)

        host_estimator(model_dir, model_fn).train(numbers(3))
        assert hooks[0].final_ops_values == {"sum": -5.5}

    def test_global_step_waiter_lets_a_run_start_once_the_step_is_reached(self, model_dir):
        model = host_estimator(model_dir)
        model.train(numbers(4), steps=3)
        hook = tf1.train.GlobalStepWaiterHook(wait_until_step=3)
        model.train(numbers(4), steps=2, hooks=[hook])
        assert model.get_variable_value("global_step") == 5

    def test_profiler_writes_a_timeline_at_its_steps(self, model_dir, tmp_path):
        def model_fn(features, labels, mode, params):
            hook = tf1.train.ProfilerHook(save_steps=3, output_dir=str(tmp_path))
            return falling(features, labels, mode, params)._replace(training_hooks=[hook])

        host_estimator(model_dir, model_fn).train(numbers(9), steps=8)
        written = sorted(path.name for path in tmp_path.glob("timeline*"))
        assert written == ["timeline-3.json", "timeline-6.json"]
        trace = json.loads((tmp_path / "timeline-6.json").read_text())
        assert any(
            "Mean" in event.get("args", {}).get("name", "") for event in trace["traceEvents"]
        )

    def test_a_timer_of_a_users_hook_counts_steps(self, model_dir):
        seen = []

        class Hook(tf1.train.SessionRunHook):
            def begin(self):
                self.timer = tf1.train.SecondOrStepTimer(every_steps=2)

            def before_run(self, run_context):
                return SessionRunArgs(tf1.train.get_global_step())

            def after_run(self, run_context, run_values):
                if self.timer.should_trigger_for_step(run_values.results):
                    self.timer.update_last_triggered_step(run_values.results)
                    seen.append(run_values.results)

        host_estimator(model_dir).train(numbers(6), hooks=[Hook()])
        assert len(seen) == 3


class TestWhoBringsHooks:
    @pytest.mark.parametrize("field", ["evaluation_hooks", "prediction_hooks"])
    def test_hooks_of_the_spec_see_their_mode(self, model_dir, field):
        hook = Asking(lambda graph: SessionRunArgs(tf1.train.get_global_step()))

        def model_fn(features, labels, mode, params):
            return falling(features, labels, mode, params)._replace(**{field: [hook]})

        model = host_estimator(model_dir, model_fn)
        model.train(numbers(3), steps=2)
        assert hook.results == []
        if field == "evaluation_hooks":
            model.evaluate(numbers(3))
        else:
            list(model.predict(numbers(3)))
        assert hook.results == [2, 2, 2]

    def test_saving_listener_sees_every_phase_and_may_stop(self, model_dir):
        calls = []

        class Listener(tf1.train.CheckpointSaverListener):
            def begin(self):
                calls.append("begin")

            def before_save(self, session, global_step_value):
                calls.append(("before", int(global_step_value)))

            def after_save(self, session, global_step_value):
                calls.append(("after", int(session.run(tf1.train.get_global_step()))))
                return global_step_value >= 4

            def end(self, session, global_step_value):
                calls.append(("end", int(global_step_value)))

        model = host_estimator(model_dir, save_checkpoints_steps=2)
        model.train(numbers(10), saving_listeners=[Listener()])
        saves = [(when, step) for step in (0, 2, 4) for when in ("before", "after")]
        assert calls == ["begin", *saves, ("end", 4)]
        assert model.get_variable_value("global_step") == 4

    def test_what_is_no_listener_is_refused(self, model_dir):
        with pytest.raises(TypeError, match="must be a list of CheckpointSaverListener"):
            host_estimator(model_dir).train(numbers(2), saving_listeners=["listener"])

    def test_names_of_tf_estimator_are_tensorflows_own_hooks(self):
        assert estimator.LoggingTensorHook is tf1.train.LoggingTensorHook
        assert estimator.SessionRunHook is tf1.train.SessionRunHook


class Counting(tf1.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        pass


class AtTheEnd(tf1.train.SessionRunHook):
    def end(self, session):
        pass


class TestHooksOnCores:
    @pytest.fixture
    def warnings(self, emulated_cores, model_dir, caplog, monkeypatch):
        """`warnings(hook, iterations)`: the warnings about hooks of one call of train."""
        emulated_cores(2)
        monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)

        def of(hook, iterations=4):
            model = cores_estimator(model_dir, iterations=iterations)
            model.train(ones, steps=4, hooks=[hook])
            return [
                r.getMessage() for r in caplog.records if "iterations_per_loop" in r.getMessage()
            ]

        return of

    def test_a_hook_that_may_want_every_step_is_warned_of(self, warnings):
        (warning,) = warnings(Counting())
        assert "Counting" in warning
        assert "iterations_per_loop=1" in warning

    def test_a_hook_that_is_only_called_at_the_end_is_not(self, warnings):
        assert warnings(AtTheEnd()) == []

    def test_stock_hooks_are_not(self, warnings):
        assert warnings(tf1.train.LoggingTensorHook(["global_step:0"], every_n_iter=1)) == []

    def test_no_hook_is_where_a_loop_is_one_step(self, warnings):
        assert warnings(Counting(), iterations=1) == []
