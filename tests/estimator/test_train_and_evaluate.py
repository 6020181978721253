"""`train_and_evaluate` in one process: when evaluations happen, with what, and what is returned."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf115
from estimator2strategy import estimator
from tests.engine.runtime.programs import (
    Steps,
    falling,
    host_estimator,
    numbers,
)

tf1 = tf.compat.v1
private = tf115.python.estimator.training
EvalSpec, TrainSpec = estimator.EvalSpec, estimator.TrainSpec


class Exports(estimator.Exporter):
    """Keeps what it is called with, and returns how often it was called."""

    def __init__(self, name="exports"):
        self._name = name
        self.calls = []

    @property
    def name(self):
        return self._name

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        path = [p.removeprefix(estimator.model_dir) for p in (export_path, checkpoint_path)]
        self.calls.append((*path, int(eval_result["global_step"]), is_the_final_export))
        return len(self.calls)


def weight_as_loss(features, labels, mode, params):
    """The loss of an evaluation is the weight: minus the sum of what was trained on."""
    spec = falling(features, labels, mode, params)
    if mode == estimator.ModeKeys.EVAL:
        (weight,) = tf1.global_variables("weight")
        # With the features, though they do not count: what needs no input never ends.
        return spec._replace(loss=weight + 0 * spec.loss)
    return spec


def steps_evaluated(model_dir, name="eval"):
    """Steps of the evaluations in the event files, and the losses."""
    found = {}
    for path in sorted(tf.io.gfile.glob(f"{model_dir}/{name}/*tfevents*")):
        for event in tf1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.tag == "loss":
                    found[event.step] = value.simple_value
    return found


def test_each_checkpoint_but_the_first_is_evaluated(model_dir):
    model = host_estimator(model_dir, weight_as_loss, save_checkpoints_steps=3)
    estimator.train_and_evaluate(
        model, TrainSpec(numbers(10), max_steps=7), EvalSpec(numbers(2), throttle_secs=0)
    )
    assert steps_evaluated(model_dir) == {3: -6.0, 6: -21.0, 7: -28.0}


def test_results_are_those_of_the_last_evaluation(model_dir):
    model = host_estimator(model_dir, weight_as_loss, save_checkpoints_steps=2)
    exports = Exports()
    metrics, exported = estimator.train_and_evaluate(
        model,
        TrainSpec(numbers(10), max_steps=4),
        EvalSpec(numbers(2), throttle_secs=0, exporters=exports),
    )
    assert metrics == {"loss": -10.0, "global_step": 4}
    assert exported == [2]


def test_throttled_checkpoints_are_skipped_but_not_the_last(model_dir, caplog):
    model = host_estimator(model_dir, save_checkpoints_steps=2)
    with caplog.at_level(logging.INFO, "tensorflow"):
        estimator.train_and_evaluate(
            model, TrainSpec(numbers(10), max_steps=7), EvalSpec(numbers(2), throttle_secs=600)
        )
    assert list(steps_evaluated(model_dir)) == [2, 7]
    skipped = [m for m in caplog.messages if "Skip the current checkpoint eval" in m]
    assert len(skipped) == 3  # steps 4 and 6, and 7 at first
    assert "throttle secs (600 secs)" in skipped[0]


def test_exporters_get_each_evaluated_checkpoint(model_dir):
    model = host_estimator(model_dir, save_checkpoints_steps=2)
    one, other = Exports("one"), Exports("other")
    estimator.train_and_evaluate(
        model,
        TrainSpec(numbers(10), max_steps=3),
        EvalSpec(numbers(2), throttle_secs=0, exporters=[one, other]),
    )
    assert one.calls == [
        ("/export/one", "/model.ckpt-2", 2, False),
        ("/export/one", "/model.ckpt-3", 3, True),
    ]
    assert [call[0] for call in other.calls] == ["/export/other"] * 2


def test_no_export_is_final_without_max_steps(model_dir):
    model, exports = host_estimator(model_dir), Exports()
    estimator.train_and_evaluate(
        model, TrainSpec(numbers(3)), EvalSpec(numbers(2), exporters=exports)
    )
    assert exports.calls == [("/export/exports", "/model.ckpt-3", 3, False)]


def test_name_steps_and_hooks_of_the_spec_reach_the_evaluation(model_dir):
    model, hook = host_estimator(model_dir), Steps()
    metrics, _ = estimator.train_and_evaluate(
        model,
        TrainSpec(numbers(3), max_steps=2),
        EvalSpec(numbers(9), steps=4, name="held_out", hooks=[hook]),
    )
    assert metrics["loss"] == 2.5
    assert list(steps_evaluated(model_dir, "eval_held_out")) == [2]
    assert hook.seen == [2, 2, 2, 2]


def test_hooks_and_listeners_of_the_training_are_called(model_dir):
    class Saves(tf1.train.CheckpointSaverListener):
        saved = ()

        def after_save(self, session, global_step_value):
            self.saved += (global_step_value,)

    model, hook, listener = host_estimator(model_dir), Steps(), Saves()
    estimator.train_and_evaluate(
        model,
        TrainSpec(numbers(9), max_steps=3, hooks=[hook], saving_listeners=[listener]),
        EvalSpec(numbers(2)),
    )
    assert hook.seen == [1, 2, 3]
    assert listener.saved == (0, 3)


class Watches(private._ContinuousEvalListener):
    """Notes what it is asked; says no to the question whose number is given."""

    def __init__(self, before=None, after=None):
        self._no = before, after
        self.before, self.results = 0, []

    def before_eval(self):
        self.before += 1
        return self.before != self._no[0]

    def after_eval(self, eval_result):
        self.results.append(eval_result)
        return len(self.results) != self._no[1]


@pytest.mark.parametrize(
    ("no", "evaluated", "trained"),
    [({}, [3, 6, 7], 7), ({"after": 2}, [3, 6], 6), ({"before": 2}, [3, 6], 6)],
    ids=["go on", "end after the second", "end before the second"],
)
def test_an_executor_asks_a_listener_whether_to_go_on(model_dir, no, evaluated, trained):
    model = host_estimator(model_dir, weight_as_loss, save_checkpoints_steps=3)
    spec, hook, watches = TrainSpec(numbers(10), max_steps=7), Steps(), Watches(**no)
    metrics, _ = private._TrainingExecutor(
        model, spec, EvalSpec(numbers(2), throttle_secs=0), [hook], watches
    ).run()
    assert [result.metrics["global_step"] for result in watches.results] == evaluated
    assert {result.status for result in watches.results} == {private._EvalStatus.EVALUATED}
    assert watches.results[-1].checkpoint_path == f"{model_dir}/model.ckpt-{evaluated[-1]}"
    assert metrics == watches.results[-1].metrics
    assert hook.seen[-1] == trained


def test_an_executor_refuses_what_is_no_listener(model_dir):
    with pytest.raises(TypeError, match="_ContinuousEvalListener"):
        private._TrainingExecutor(
            host_estimator(model_dir),
            TrainSpec(numbers(1)),
            EvalSpec(numbers(1)),
            continuous_eval_listener=Steps(),
        )


def test_an_executor_refuses_what_is_no_hook(model_dir):
    with pytest.raises(TypeError, match="All hooks must be `SessionRunHook` instances"):
        private._TrainingExecutor(
            host_estimator(model_dir), TrainSpec(numbers(1)), EvalSpec(numbers(1)), [object()]
        )


def test_resumed_training_does_not_evaluate_where_it_starts(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(3))
    estimator.train_and_evaluate(
        model, TrainSpec(numbers(3), max_steps=5), EvalSpec(numbers(2), throttle_secs=0)
    )
    assert list(steps_evaluated(model_dir)) == [5]


def test_nothing_is_evaluated_when_training_was_done(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(5))
    result = estimator.train_and_evaluate(
        model, TrainSpec(numbers(5), max_steps=5), EvalSpec(numbers(2))
    )
    assert result == (None, None)
    assert not steps_evaluated(model_dir)


def test_evaluation_leaves_the_training_as_it_was(model_dir, tmp_path):
    """The losses of a training that is interrupted by evaluations are those of one that is not."""
    model = host_estimator(model_dir, save_checkpoints_steps=2)
    estimator.train_and_evaluate(
        model, TrainSpec(numbers(9)), EvalSpec(numbers(2), throttle_secs=0)
    )
    alone = host_estimator(str(tmp_path / "alone"))
    alone.train(numbers(9))
    assert model.get_variable_value("weight") == alone.get_variable_value("weight") == -45


def test_training_without_checkpoints_is_refused(model_dir):
    model = host_estimator(model_dir, save_checkpoints_secs=None, save_checkpoints_steps=None)
    with pytest.raises(ValueError, match="CheckpointSaverHook to use saving_listeners"):
        estimator.train_and_evaluate(model, TrainSpec(numbers(2)), EvalSpec(numbers(2)))


class TestArguments:
    """Types and messages are those of the original: programs match on them."""

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"input_fn": 1}, TypeError, "`input_fn` must be callable"),
            ({"max_steps": 0}, ValueError, "Must specify max_steps > 0"),
            ({"hooks": [1]}, TypeError, "All hooks must be `SessionRunHook` instances"),
            (
                {"saving_listeners": [1]},
                TypeError,
                "All saving_listeners must be `CheckpointSaverListener` instances",
            ),
        ],
    )
    def test_wrong_train_spec(self, arguments, error, message):
        with pytest.raises(error, match=message):
            TrainSpec(**{"input_fn": numbers(1), **arguments})

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"input_fn": 1}, TypeError, "`input_fn` must be callable"),
            ({"steps": 0}, ValueError, "Must specify steps > 0"),
            ({"name": 1}, TypeError, "`name` must be string"),
            ({"hooks": [1]}, TypeError, "All hooks must be `SessionRunHook` instances"),
            ({"start_delay_secs": -1}, ValueError, "Must specify start_delay_secs >= 0"),
            ({"throttle_secs": -1}, ValueError, "Must specify throttle_secs >= 0"),
            ({"exporters": 1}, TypeError, "`exporters` must be an Exporter"),
            ({"exporters": [1]}, TypeError, "`exporters` must be an Exporter"),
            ({"exporters": Exports("")}, ValueError, "cannot have a name that is `None` or empty"),
            ({"exporters": Exports(1)}, ValueError, "must have a string name"),
            ({"exporters": [Exports(), Exports()]}, ValueError, "must have unique names"),
        ],
    )
    def test_wrong_eval_spec(self, arguments, error, message):
        with pytest.raises(error, match=message):
            EvalSpec(**{"input_fn": numbers(1), **arguments})

    def test_defaults(self):
        input_fn = numbers(1)
        assert TrainSpec(input_fn) == (input_fn, None, (), ())
        assert EvalSpec(input_fn) == (input_fn, 100, None, (), (), 120, 600)

    @pytest.mark.parametrize("wrong", ["estimator", "train_spec", "eval_spec"])
    def test_wrong_type(self, model_dir, wrong):
        right = {
            "estimator": host_estimator(model_dir),
            "train_spec": TrainSpec(numbers(1)),
            "eval_spec": EvalSpec(numbers(1)),
        }
        with pytest.raises(TypeError, match=f"`{wrong}` must have type `tf.estimator"):
            estimator.train_and_evaluate(**{**right, wrong: np.int32(1)})
