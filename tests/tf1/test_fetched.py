"""What hooks get of the variables that they fetch: TF 1.15's in its programs, TF 2's in others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests import legacy_programs

TESTS = Path(__file__).parents[1]
GOLDEN = json.loads((TESTS / "goldens" / "fetched.json").read_text())
tf1 = tf.compat.v1


@pytest.fixture(scope="module")
def program():
    with legacy_programs.imported("fetched") as program:
        yield program


def model_fn(features, mode):
    step = tf1.train.get_global_step()
    return estimator.EstimatorSpec(mode, loss=features, train_op=step.assign_add(1))


class Asking(tf1.train.SessionRunHook):
    def __init__(self, args):
        self._args = args
        self.results = []

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(self._args())

    def after_run(self, run_context, run_values):
        self.results.append(run_values.results)


def batches():
    return tf.data.Dataset.from_tensors(1.0).repeat(3)


@pytest.mark.oldest
@pytest.mark.parametrize("name", GOLDEN)
def test_a_program_of_tf_1_15_gets_what_reference_variables_gave(name, program):
    makers = {"Estimator": program.on_host, "TPUEstimator": program.by_tpu_estimator}
    with tf.Graph().as_default():  # as where legacy code runs
        assert program.run(makers[name]) == GOLDEN[name]


@pytest.mark.oldest
def test_other_programs_get_a_variable_without_the_update(model_dir):
    hook = Asking(tf1.train.get_global_step)
    estimator.Estimator(model_fn, model_dir).train(batches, hooks=[hook])
    assert hook.results == [0, 1, 2]


def test_a_variable_comes_beside_its_assignment_with_the_new_value(model_dir):
    import estimator2strategy.tf1 as facade  # here alone: it makes this function TF 1.15's

    class Assigning(tf1.train.SessionRunHook):
        def begin(self):
            self._variable = facade.get_variable("v", initializer=1.0)
            self._double = self._variable.assign(self._variable * 2)
            self.results = []

        def after_run(self, run_context, run_values):
            fetches = [self._variable, self._double.op]
            self.results.append(run_context.session.run(fetches)[0])

    hook = Assigning()
    facade.estimator.Estimator(model_fn, model_dir).train(batches, hooks=[hook])
    assert hook.results == [2, 4, 8]


def test_steps_are_logged_as_tf_1_15_counted_them(program, caplog):
    with tf.Graph().as_default(), caplog.at_level("INFO", "tensorflow"):
        made = program.on_host(None)
        made.train(program.input_fn, steps=201)
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("loss = ")]
    assert [line.split("step = ")[1].split(" ")[0] for line in lines] == ["1", "101", "201"]


@pytest.mark.oldest
def test_after_disable_v2_behavior_hooks_get_what_tf_2_15_gave():
    expected = json.loads((TESTS / "goldens" / "without_v2.json").read_text())
    assert legacy_programs.printed_by("without_v2.py") == expected
