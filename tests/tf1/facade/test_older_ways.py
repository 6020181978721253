"""Flags are parsed, and gradients registered, as programs of TF 1.x did it."""

from __future__ import annotations

import json

import pytest

from tests.test_package import in_fresh_process

# Flags and gradients are the process's, so one of their own.
_PROGRAM = """
import json, sys
import estimator2strategy.tf1 as tf
from estimator2strategy.tf1.python.framework import ops
from estimator2strategy.tf1.python.platform import flags

sys.argv = ["train.py", "--steps=3", "--other=4", "data"]
tf.app.flags.DEFINE_integer("steps", 1, "Steps to train.")
FLAGS = tf.app.flags.FLAGS
said = {"unknown": FLAGS._parse_flags(), "steps": FLAGS.steps, "one": flags.FLAGS is FLAGS}
said["given"] = (FLAGS._parse_flags(["--steps=5"]), FLAGS.steps, FLAGS["steps"].value)
said["listed"] = {k: v.value for k, v in FLAGS.__flags.items()}["steps"]


@tf.RegisterGradient("ClipByValue")  # none in TF 1.15
def _through(op, grad):
    return [grad, None, None]


@ops.RegisterShape("ClipByValue")
def _shape(op):
    return [op.inputs[0].shape]


def second(name):
    try:
        tf.RegisterGradient(name)(_through)
    except KeyError as error:
        return str(error)


said["taken"] = [second("Relu"), second("ClipByValue")]
with tf.Graph().as_default() as graph:
    inputs = [tf.constant(value) for value in ([-2.0, 0.5], -1.0, 1.0)]
    clipped = graph.create_op("ClipByValue", inputs, [tf.float32]).outputs[0]
    (slope,) = tf.gradients(clipped, inputs[0])
    with tf.Session() as session:
        said["slope"] = session.run(slope).tolist()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said():
    return json.loads(in_fresh_process(_PROGRAM).splitlines()[-1])


@pytest.mark.oldest
def test_flags_are_parsed_as_before_tf_1_5(said):
    assert (said["unknown"], said["steps"]) == (["--other=4", "data"], 3)
    assert said["given"] == [[], 5, 5]
    assert said["listed"] == 5


def test_flags_are_the_same_object_wherever_they_are_imported_from(said):
    assert said["one"]


@pytest.mark.oldest
def test_a_program_registers_a_gradient_that_tf_1_15_had_not(said):
    assert said["slope"] == [1.0, 1.0]  # TensorFlow's own is 0 outside of the bounds


def test_a_gradient_that_tf_1_15_had_is_refused_as_there_and_a_second_one_too(said):
    relu, clip = said["taken"]
    assert "Registering two gradient with name 'Relu'" in relu
    assert "Registering two gradient with name 'ClipByValue'" in clip
