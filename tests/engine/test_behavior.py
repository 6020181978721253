"""A graph has the behaviour of its maker; elsewhere it is that of the function which builds."""

from __future__ import annotations

import threading

import pytest
import tensorflow as tf

from estimator2strategy.engine import _tf_switches, behavior
from estimator2strategy.engine.behavior import TF115, Behavior
from estimator2strategy.engine.worlds import legacy_world, modern_world, recording

tf1 = tf.compat.v1
pytestmark = pytest.mark.oldest
INTERESTING = {"VariableV2", "VarHandleOp", "Merge", "If"}
OF_TF1, OF_TF2 = {"VariableV2", "Merge"}, {"VarHandleOp", "If"}


def build(graph=None):
    """Of which types the ops are that a variable and a cond consist of."""
    graph = graph or tf.Graph()
    with graph.as_default():
        old = len(graph.get_operations())
        with tf1.variable_scope(None, "new"):
            v = tf1.get_variable("v", [])
        tf1.cond(tf.constant(True), lambda: v + 1.0, lambda: v)
        return {op.type for op in graph.get_operations()[old:]} & INTERESTING


def marked(wanted):
    graph = tf.Graph()
    behavior.mark(graph, wanted)
    return graph


def in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_graph_keeps_its_behaviour_whoever_builds_in_it():
    assert build(marked(TF115)) == OF_TF1
    recorded = marked(behavior.recorded(tf115=False))
    with recorded.as_default(), behavior.entered(TF115):
        assert build(recorded) == OF_TF2
    assert in_thread(lambda: build(marked(TF115))) == OF_TF1


def test_other_graphs_have_the_behaviour_that_is_entered_in_them_while_it_is():
    graph = tf.Graph()
    assert build(graph) == OF_TF2
    with graph.as_default(), behavior.entered(TF115):
        assert build(graph) == OF_TF1
        assert build() == OF_TF2
        assert behavior.is_entered()
        assert not in_thread(behavior.is_entered)
        with behavior.entered(None):
            assert build(graph) == OF_TF2
    assert build(graph) == OF_TF2


def test_a_function_enters_its_behaviour_and_leaves_it_also_by_an_error():
    @behavior.entering
    def fails():
        assert build(graph) == OF_TF1
        raise KeyError

    graph = tf.Graph()
    with graph.as_default():
        with pytest.raises(KeyError):
            fails()
        assert build(graph) == OF_TF2


def test_functions_in_a_graph_have_its_behaviour():
    seen = []

    def note():
        seen.append(behavior.now())
        return 1.0

    with marked(TF115).as_default():
        tf.function(note, autograph=False)()
    assert seen == [TF115]


def test_what_the_program_switches_on_holds_in_its_graphs_alone():
    behavior.SWITCHED_ON.add(behavior.RESOURCE_VARIABLES)
    assert build(marked(TF115)) == {"VarHandleOp", "Merge"}
    behavior.SWITCHED_ON.add(behavior.CONTROL_FLOW_V2)
    assert build(marked(TF115)) == OF_TF2


def test_what_nobody_has_said_is_as_the_process_says():
    assert build(marked(Behavior(tf115=True))) == OF_TF2


def test_threads_of_a_program_in_graph_mode_build_as_tf_1_15_in_their_own_graph():
    def program():
        with _tf_switches.graph_mode():
            before = build(tf1.get_default_graph())
            behavior.enter_thread(True)
            tf1.reset_default_graph()
            return before, build(tf1.get_default_graph()), build()

    assert in_thread(program) == (OF_TF2, OF_TF1, OF_TF2)


def test_recordings_in_two_threads_do_not_meet():
    """One names ops in loops by their scope, the other does not; a third builds for TF 2."""
    meet = threading.Barrier(3, timeout=60)

    def names(tf115):
        def body(i):
            found.append(tf.constant(1, name="one").name)
            return i + 1

        found: list = []
        with legacy_world(), recording(None, tf115):
            meet.wait()
            with tf1.name_scope("outer"):
                tf1.while_loop(lambda i: i < 2, body, [tf.constant(0)])
            meet.wait()
            found.append(isinstance(tf.TensorShape([1])[0], int))
        return found

    found: dict = {}

    def modern():
        meet.wait()
        found["modern"] = build(), isinstance(tf.TensorShape([1])[0], int)
        meet.wait()

    threads = [
        threading.Thread(target=modern),
        *(
            threading.Thread(target=lambda tf115=tf115: found.update({tf115: names(tf115)}))
            for tf115 in (True, False)
        ),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {
        True: ["outer/while/one:0", False],
        False: ["one:0", False],
        "modern": (OF_TF2, True),
    }


def test_recordings_can_be_replayed_though_the_process_is_switched_to_v1(monkeypatch):
    for module, flag in _tf_switches._GRAPH_SWITCHES:
        monkeypatch.setattr(module, flag, False)
    with legacy_world(), recording(None) as graph:
        assert build(graph) == OF_TF2
    assert build() == OF_TF1


def test_the_modern_world_is_not_tf_1_15s_within_a_function_of_it():
    with behavior.entered(TF115), modern_world():
        assert not behavior.is_entered()


@pytest.mark.parametrize(("wanted", "seeds"), [(TF115, [1, 4]), (Behavior(), [0, 1])])
def test_seeds_of_ops_count_the_ops_of_a_graph_of_tf_1_15(wanted, seeds):
    with marked(wanted).as_default():
        tf1.set_random_seed(7)
        tf.constant(1)
        found = [tf1.get_seed(None)[1]]
        for _ in range(3):
            tf.constant(1)
        found.append(tf1.get_seed(None)[1])
    assert found == seeds
