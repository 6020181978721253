"""Switches between graph and eager mode, and the class of all variables."""

from __future__ import annotations

import threading
import types

import pytest
import tensorflow as tf
from tensorflow.python.framework import test_util

import estimator2strategy.tf1 as tf1
from estimator2strategy.engine.worlds import legacy_world, recording
from estimator2strategy.legacy import importing
from estimator2strategy.tf1.facade import namespace


def in_thread(function):
    """What `function` returns in a new thread, or its error; this thread stays eager."""
    result = []

    def run():
        try:
            result.append(function())
        except ValueError as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert tf.executing_eagerly()
    return result[0]


@pytest.mark.parametrize("off", [tf1.disable_eager_execution, tf1.disable_v2_behavior])
@pytest.mark.parametrize("on", [tf1.enable_eager_execution, tf1.enable_v2_behavior])
def test_a_program_switches_its_own_thread_only(off, on):
    def program():
        modes = [tf.executing_eagerly()]
        off()
        off()
        modes.append(tf.executing_eagerly())
        on()
        on()
        return [*modes, tf.executing_eagerly()]

    assert in_thread(program) == [True, False, True]


def test_eager_mode_comes_before_the_first_op_or_not_at_all():
    def program():
        tf1.disable_eager_execution()
        tf1.placeholder(tf.float32)
        tf1.enable_eager_execution()

    assert "must be called at program startup" in str(in_thread(program))


def test_every_variable_is_a_variable():
    with tf.Graph().as_default():
        made = tf1.Variable(1.0, name="made", trainable=False)
        got = tf1.get_variable("got", [2])
        assert tf1.trainable_variables() == [got]
        assert made.op.name == "made"
    for variable in (made, got, tf.Variable(1.0)):
        assert isinstance(variable, tf1.Variable)
    assert issubclass(type(got), tf1.Variable)
    assert not isinstance(tf.constant(1), tf1.Variable)
    assert tf1.Variable.SaveSliceInfo is tf.compat.v1.Variable.SaveSliceInfo


def found_by(source):
    """What a legacy program with this source calls `found`."""
    program = types.ModuleType("program")
    in_thread(lambda: importing.execute(compile(source, "program.py", "exec"), program))
    return program.found


def test_tensors_in_loops_are_keys_and_equal_to_themselves_alone():
    source = (
        "import tensorflow as tf\n"
        "with tf.Graph().as_default():\n"
        "    limit = tf.constant(3)\n"
        "    def body(i):\n"
        "        global found\n"
        "        found = ({i: 'key'}[i], i == limit, i in [limit, i], i == None)\n"
        "        return i + 1\n"
        "    tf.while_loop(lambda i: i < limit, body, [tf.constant(0)])\n"
    )
    assert found_by(source) == ("key", False, True, False)


def test_v2_behavior_is_off_until_a_program_asks_for_it():
    source = (
        "import tensorflow as tf\n"
        "from tensorflow.python import tf2\n"
        "found = [tf2.enabled()]\n"
        "tf.enable_v2_behavior()\n"
        "found.append(tf2.enabled())\n"
        "tf.disable_v2_behavior()\n"
        "found.append(tf2.enabled())\n"
    )
    assert found_by(source) == [False, True, False]


@pytest.mark.parametrize(
    ("asked", "ran"), [("", ["OfFunction", "OfClass"]), ("tf.enable_v2_behavior()", [])]
)
def test_tests_of_v1_alone_run_until_a_program_asks_for_v2_behavior(asked, ran):
    source = (
        "import tensorflow as tf\n"
        "from tensorflow.python.framework import test_util\n"
        f"{asked}\n"
        "class OfFunction(tf.test.TestCase):\n"
        "    @test_util.run_v1_only('graphs')\n"
        "    def test_it(self):\n"
        "        ran.append(type(self).__name__)\n"
        "@test_util.run_v1_only('graphs')\n"
        "class OfClass(tf.test.TestCase):\n"
        "    def test_it(self):\n"
        "        ran.append(type(self).__name__)\n"
        "ran = []\n"
        "skipped = [case('test_it')().skipped for case in (OfFunction, OfClass)]\n"
        "found = ran, [each[0][1] for each in skipped if each]\n"
        "tf.disable_v2_behavior()\n"
    )
    assert found_by(source) == (ran, ["graphs"] * (2 - len(ran)))


def test_v2_behavior_is_on_in_a_program_of_tf_2():
    assert namespace.resolve("tf.python.tf2.enabled", tf2=True)()
    decorated = namespace.resolve("tf.python.framework.test_util.run_v1_only", tf2=True)
    assert decorated is test_util.run_v1_only


def test_recorded_ops_in_branches_and_loops_are_named_after_the_scope_around_them():
    """As TF 1.15 names them: programs ask whether they are in a loop."""
    found = []

    def note(*x):
        found.append((tf1.contrib.framework.get_name_scope(), tf.constant(1, name="k").op.name))
        return x[0]

    with legacy_world(), recording(None, tf115=True), tf1.name_scope("a"):
        x = tf1.placeholder(tf.float32)
        tf1.cond(x > 0, lambda: note(x), lambda: x)
        tf1.while_loop(lambda x: x < 1, note, [x])
        tf1.map_fn(note, tf.zeros([2]))
    scopes = ["a/cond", "a/while", "a/map/while"]
    assert found == [(scope, f"{scope}/k") for scope in scopes]
