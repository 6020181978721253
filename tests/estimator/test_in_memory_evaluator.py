"""`InMemoryEvaluatorHook`: when it evaluates, with which weights, and what it refuses."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import (
    cores_estimator,
    falling_on_cores,
    host_estimator,
    numbers,
    ones,
)
from tests.estimator.test_train_and_evaluate import steps_evaluated, weight_as_loss

tf1 = tf.compat.v1
InMemoryEvaluatorHook = estimator.experimental.InMemoryEvaluatorHook


def test_live_weights_are_evaluated_at_the_start_now_and_then_and_at_the_end(model_dir):
    model = host_estimator(model_dir, weight_as_loss, save_checkpoints_steps=100)
    model.train(numbers(10), hooks=[InMemoryEvaluatorHook(model, numbers(2), every_n_iter=4)])
    assert steps_evaluated(model_dir) == {0: 0.0, 4: -10.0, 8: -36.0, 10: -55.0}


def test_functions_are_called_once_for_all_evaluations(model_dir):
    calls = []

    def model_fn(features, labels, mode, params):
        calls.append(mode)
        return weight_as_loss(features, labels, mode, params)

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(9), hooks=[InMemoryEvaluatorHook(model, numbers(2), every_n_iter=2)])
    assert sorted(calls) == ["eval", "train"]


def test_steps_name_and_hooks(model_dir):
    batches = []

    class Batches(tf1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            batches.append(1)

    model = host_estimator(model_dir)
    hook = InMemoryEvaluatorHook(
        model, numbers(9), steps=4, hooks=[Batches()], name="held_out", every_n_iter=3
    )
    model.train(numbers(3), hooks=[hook])
    # At 0, 3, and at the end. The loss is the mean of 1, 2, 3 and 4.
    assert steps_evaluated(model_dir, "eval_held_out") == {0: 2.5, 3: 2.5}
    assert len(batches) == 3 * 4


def test_variables_that_training_has_not_keep_their_initial_values(model_dir):
    def model_fn(features, labels, mode, params):
        spec = weight_as_loss(features, labels, mode, params)
        if mode == "eval":
            own = tf1.get_variable("own", [], initializer=tf1.constant_initializer(100.0))
            return spec._replace(loss=spec.loss + own)
        return spec

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(3), hooks=[InMemoryEvaluatorHook(model, numbers(2), every_n_iter=9)])
    assert steps_evaluated(model_dir) == {0: 100.0, 3: 94.0}


def test_on_cores_it_counts_loops(emulated_cores, model_dir):
    emulated_cores(2)

    def model_fn(features, labels, mode, params):
        spec = falling_on_cores(features, labels, mode, params)
        (weight,) = tf1.global_variables("weight")
        return spec._replace(loss=weight + 0 * spec.loss) if mode == "eval" else spec

    model = cores_estimator(model_dir, model_fn, iterations=3)
    hook = InMemoryEvaluatorHook(model, ones, steps=1, every_n_iter=2)
    model.train(ones, hooks=[hook], max_steps=12)
    assert steps_evaluated(model_dir) == {0: 0.0, 6: -6.0, 12: -12.0}


class TestRefused:
    @pytest.mark.parametrize("every", [0, -1, None])
    def test_an_interval_that_is_none(self, model_dir, every):
        with pytest.raises(ValueError, match="invalid every_n_iter"):
            InMemoryEvaluatorHook(host_estimator(model_dir), numbers(2), every_n_iter=every)

    @pytest.mark.parametrize("cluster", [{"worker": ["b:1"]}, {"ps": ["b:1"]}])
    def test_several_processes(self, model_dir, monkeypatch, cluster):
        task = {"type": "chief", "index": 0}
        tf_config = {"cluster": {"chief": ["a:1"], **cluster}, "task": task}
        monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config))
        with pytest.raises(ValueError, match="supports only single machine"):
            InMemoryEvaluatorHook(host_estimator(model_dir), numbers(2))

    @pytest.mark.parametrize(
        ("scaffold", "message"),
        [
            (lambda: {"saver": tf1.train.Saver()}, "does not support custom saver"),
            (lambda: {"init_fn": lambda *_: None}, "does not support custom init_fn"),
        ],
    )
    def test_scaffolds_of_the_evaluation(self, model_dir, scaffold, message):
        def model_fn(features, labels, mode, params):
            spec = weight_as_loss(features, labels, mode, params)
            if mode == "eval":
                return spec._replace(scaffold=tf1.train.Scaffold(**scaffold()))
            return spec

        model = host_estimator(model_dir, model_fn)
        with pytest.raises(ValueError, match=message):
            model.train(numbers(3), hooks=[InMemoryEvaluatorHook(model, numbers(2))])

    def test_saveables_that_are_no_variables(self, model_dir):
        def model_fn(features, labels, mode, params):
            spec = weight_as_loss(features, labels, mode, params)
            if mode == "train":
                (weight,) = tf1.global_variables("weight")
                saveable = tf1.train.Saver([weight])  # anything: nobody looks into it
                tf1.add_to_collection(tf1.GraphKeys.SAVEABLE_OBJECTS, saveable)
                saver = tf1.train.Saver([weight])
                return spec._replace(scaffold=tf1.train.Scaffold(saver=saver))
            return spec

        model = host_estimator(model_dir, model_fn)
        with pytest.raises(ValueError, match="saveables other than global variables"):
            model.train(numbers(3), hooks=[InMemoryEvaluatorHook(model, numbers(2))])
