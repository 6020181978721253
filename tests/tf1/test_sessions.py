"""Plain Sessions of programs of TF 1.15 have its variables and its control flow."""

from __future__ import annotations

import importlib
import json
import types
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy.engine.worlds import legacy_world, recording
from estimator2strategy.legacy import importing
from tests import legacy_programs
from tests.same import assert_same

TESTS = Path(__file__).parents[1]
GOLDEN = json.loads((TESTS / "goldens" / "sessions.json").read_text())
tf1 = tf.compat.v1


@pytest.fixture(scope="module")
def printed():
    """The output of the program under `e2s run`."""
    return legacy_programs.printed_by("-m", "estimator2strategy", "run", "sessions.py")


@pytest.mark.oldest
@pytest.mark.parametrize("case", GOLDEN)
def test_a_program_gets_of_its_session_what_tf_1_15_gave(case, printed):
    assert_same(printed[case], GOLDEN[case], case)


def types_made(tensorflow):
    """Of which types the ops are that a variable and a cond consist of."""
    with tensorflow.Graph().as_default() as graph:
        v = tensorflow.get_variable("v", [])
        tensorflow.cond(tensorflow.constant(True), lambda: v + 1.0, lambda: v)
    interesting = {"VariableV2", "VarHandleOp", "Merge", "If"}
    return {op.type for op in graph.get_operations()} & interesting


def facade():
    """Not imported above, or all of this file were a program of TF 1.15."""
    return importlib.import_module("estimator2strategy.tf1")


OF_TF1, OF_TF2 = {"VariableV2", "Merge"}, {"VarHandleOp", "If"}


@pytest.mark.oldest
def test_variables_and_conds_are_those_of_whose_code_makes_them():
    assert types_made(facade()) == OF_TF1
    assert types_made(tf1) == OF_TF2


def test_a_recording_has_variables_and_conds_that_can_be_replayed():
    types_made(facade())
    with legacy_world(), recording(seed=None, tf115=True) as graph:
        v = facade().get_variable("v", [])
        facade().cond(facade().constant(True), lambda: v + 1.0, lambda: v)
        assert {op.type for op in graph.get_operations()} & (OF_TF1 | OF_TF2) == OF_TF2
        count = len(graph.get_operations())
        assert types_made(facade()) == OF_TF1  # a graph of its own, for a Session
        assert len(graph.get_operations()) == count


def test_programs_switch_resource_variables_and_functional_control_flow_on():
    facade().enable_resource_variables()
    assert facade().resource_variables_enabled() is True
    assert types_made(facade()) == {"VarHandleOp", "Merge"}
    facade().enable_control_flow_v2()
    assert facade().control_flow_v2_enabled() is True
    assert types_made(facade()) == OF_TF2
    facade().disable_resource_variables()
    facade().disable_control_flow_v2()
    assert types_made(facade()) == OF_TF1


EXPORTING = """
import tensorflow as tf

def model_fn(features, labels, mode):
    predicted = features["x"] * tf.get_variable("v", [], initializer=tf.ones_initializer())
    train_op = tf.train.get_global_step().assign_add(1)
    return tf.estimator.EstimatorSpec(mode, predicted, tf.reduce_sum(predicted), train_op)

def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [1.0]}, [1.0]))

def receiver_fn():
    x = tf.placeholder(tf.float32, [None])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

made = tf.estimator.Estimator(model_fn, folder)
made.train(input_fn)
exported = made.export_saved_model(folder + "/exported", receiver_fn)
"""


def test_what_an_estimator_exports_has_variables_that_tf_2_can_hand_out(tmp_path):
    program = types.ModuleType("program")
    program.folder = str(tmp_path)
    with tf.Graph().as_default():
        importing.execute(compile(EXPORTING, "program.py", "exec"), program)
    loaded = tf.saved_model.load(program.exported.decode())
    assert "v:0" in [variable.name for variable in loaded.variables]
