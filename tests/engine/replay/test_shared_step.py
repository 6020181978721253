"""What all cores do alike is traced once, and each core still has what is its own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

from estimator2strategy.engine.plan import segments
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay import handle_packing
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.replicas import ReplicatedModel
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.replay.shared_step import can_share
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.worlds import legacy_world, modern_world, recording
from tests.strategies import mirrored

tf1 = tf.compat.v1


def summed(x):
    """The sum of `x` over the cores, as CrossShardOptimizer writes it down."""
    return tf1.tpu.cross_replica_sum(x)


def traced(graph, outputs, cores, ops=(), feeds=(), host_uses=()):
    """A session, and the function that runs one step of `cores` cores (of feeds, per core)."""
    recorded = RecordedGraph(graph)
    strategy = mirrored(cores)
    variables = [node.name for node in recorded.nodes if node.op == "VarHandleOp"]
    session = ReplaySession(
        recorded.graph, Runs(Replay(recorded, State(recorded, strategy, variables)))
    )
    model = ReplicatedModel(
        strategy,
        feeds=tuple(t.name for t in feeds),
        outputs=tuple(t.name for t in outputs),
        ops=tuple(op.name for op in ops),
    )

    @tf.function(autograph=False)
    def step(*values):
        return model.trace(recorded, session.state, values, host_uses)

    return session, step


def nodes_in(function) -> int:
    graph_def = function.graph.as_graph_def()
    return len(graph_def.node) + sum(len(f.node_def) for f in graph_def.library.function)


def test_a_program_for_eight_cores_is_hardly_larger_than_one_for_a_single_core():
    def size(cores):
        with legacy_world(), recording(1) as graph:
            x = tf1.get_variable("v", [4], initializer=tf1.ones_initializer())
            for _ in range(200):
                x = tf.tanh(x)
            total = summed(x)
            for _ in range(200):
                total = tf.tanh(total)
        _, step = traced(graph, [total], cores)
        return nodes_in(step.get_concrete_function())

    assert size(8) < 1.5 * size(2)


def counting_up(variables):
    """A graph in which cores add 1 to each of some variables; init, the step, and the values."""
    with legacy_world(), recording(1) as graph:
        made = [
            tf1.get_variable(f"v{i}", [i + 1], initializer=tf1.zeros_initializer())
            for i in range(variables)
        ]
        added, values = [], []
        for variable in made:
            added.append(variable.assign_add(tf.ones_like(variable)).op)
            with tf.control_dependencies(added[-1:]):
                values.append(variable.read_value())
        initial = tf.group(*(variable.initializer for variable in made))
    return graph, initial, added, values


def test_the_variables_of_a_core_are_one_input():
    graph, initial, added, values = counting_up(20)
    session, step = traced(graph, values, 3, ops=added)
    session.run(initial)
    session.state.broadcast(node.name for node in session.recorded.nodes)
    assert len(step.get_concrete_function().captured_inputs) == 3
    for steps in (1, 2):
        for i, per_core in enumerate(step()):
            np.testing.assert_array_equal(per_core, np.full([3, i + 1], steps))


def test_the_shapes_of_variables_are_known_when_the_program_is_rewritten():
    """What is fused depends on them, and by that the last digits of what is computed."""
    graph, _, added, values = counting_up(3)
    _, step = traced(graph, values, 2, ops=added)
    library = step.get_concrete_function().graph.as_graph_def().library
    (segment,) = [f for f in library.function if any(n.op == "Unpack" for n in f.node_def)]
    reads = [node.name for node in segment.node_def if node.op == "ReadVariableOp"]
    shaped = {
        node.input[0].partition(":")[0]: node.attr["shape"].shape.dim[0].size
        for node in segment.node_def
        if node.op == "EnsureShape"
    }
    assert sorted(shaped) == sorted(reads)
    assert sorted(shaped.values()) == [1, 2, 3]


def test_a_variable_that_the_host_uses_too_is_an_input_of_its_own():
    """Or TensorFlow would not know that one has to wait for the other."""
    graph, _, added, values = counting_up(20)
    session, step = traced(graph, values, 2, ops=added, host_uses={"v7"})
    inputs = {id(handle) for handle in step.get_concrete_function().captured_inputs}
    assert len(inputs) == 4
    assert {id(session.state.handle("v7", core)) for core in range(2)} < inputs


def test_variables_that_the_host_uses_are_told_from_those_of_cores_alone():
    graph, _, _, values = counting_up(4)
    with graph.as_default():
        stand_in = tf.no_op("cores")
        called = tf.negative(values[2]).op
        with tf.control_dependencies([stand_in]):
            fetched = tf.negative(values[0], name="fetched")
    found = []

    def trace(recorded, state, inputs, context):
        found.append(context.host_uses)
        return []

    splice = Splice("cores", (values[1].name,), (), trace, ops=(called.name,))
    with modern_world():
        dataclasses.replace(Replay.of_graph(graph), splices=(splice,)).function((fetched.name,))
    assert found == [{"v0", "v1", "v2"}]


def test_packed_handles_are_renewed_with_the_variables():
    graph, _, added, _ = counting_up(3)
    session, step = traced(graph, [], 2, ops=added)
    (old, other) = step.get_concrete_function().captured_inputs
    renewed = session.state.revive(session.state.retire())
    new = renewed[id(old)]
    assert id(other) in renewed
    session.state.variable("v2").assign([5.0, 6.0, 7.0])
    value = tf.raw_ops.ReadVariableOp(resource=tf.unstack(new)[2], dtype=tf.float32)
    np.testing.assert_array_equal(value, [5.0, 6.0, 7.0])


@pytest.fixture(params=[True, False], ids=["on one CPU", "each on a device"])
def sharing(request, monkeypatch):
    """Replicas as emulated cores have them, and as GPUs do: they do not share a device."""
    monkeypatch.setattr(handle_packing, "share_a_cpu", lambda strategy: request.param)


@pytest.mark.usefixtures("sharing")
def test_a_sum_of_what_all_cores_are_given_counts_each_of_them():
    with legacy_world(), recording(1) as graph:
        fed = tf1.placeholder(tf.float32, [])
        total = summed(fed)
    _, step = traced(graph, [total], 3, feeds=[fed])
    same = tf.constant(2.0)
    assert [float(value) for value in step(same, same, same)[0]] == [6.0] * 3


def test_segments_hand_on_what_later_ones_need():
    with legacy_world(), recording(1) as graph:
        fed = tf1.placeholder(tf.float32, [2], name="fed")
        kept = tf.tanh(fed, name="kept")
        total = summed(kept)
        with tf.control_dependencies([kept]):
            tf.add(total, kept, name="result")
        tf.negative(fed, name="alone")
    recorded = RecordedGraph(graph)
    levels = segments.levels(recorded, ["result", "alone"])
    first, last = segments.cut(recorded, ["fed:0"], ["result:0"], ["alone"], levels)
    assert (first.takes, first.gives, first.ops) == (("fed:0",), ("kept:0",), ())
    assert first.sums == (total.op.name,)
    assert set(last.takes) == {total.name, "kept:0", "fed:0"}
    assert (last.gives, last.ops, last.sums) == (("result:0",), ("alone",), ())
    assert {"fed", "kept", total.op.name} <= last.done


@pytest.mark.usefixtures("sharing")
def test_each_core_has_its_own_batch_and_variables():
    with legacy_world(), recording(1) as graph:
        fed = tf1.placeholder(tf.float32, [])
        counter = tf1.get_variable("counter", [], initializer=tf1.zeros_initializer())
        count = counter.assign_add(fed)
        with tf.control_dependencies([count]):
            total = summed(counter.read_value())
            own = counter.read_value() + 0.0 * total
        initial = counter.initializer
    session, step = traced(graph, [own, total], 3, feeds=[fed])
    session.run(initial)
    for n in (1, 2):
        owns, totals = step(*map(tf.constant, [1.0, 10.0, 100.0]))
        assert [float(value) for value in owns] == [1.0 * n, 10.0 * n, 100.0 * n]
        assert [float(value) for value in totals] == [111.0 * n] * 3


def test_ops_without_a_seed_draw_something_else_on_each_core():
    with legacy_world(), recording(None) as graph:
        drawn = tf1.random_uniform([4])
    assert can_share(RecordedGraph(graph), [drawn.op.name])
    _, step = traced(graph, [drawn], 3)
    ((one, two, three),) = step()
    assert len({tuple(part.numpy()) for part in (one, two, three)}) == 3


def test_ops_with_seeds_in_branches_draw_something_else_on_each_core():
    with legacy_world(), recording(5) as graph:
        fed = tf1.placeholder(tf.bool, [])
        drawn = tf1.cond(fed, lambda: tf1.random_uniform([4]), lambda: tf.zeros([4]))
    assert not can_share(RecordedGraph(graph), [drawn.op.name])
    _, step = traced(graph, [drawn], 3, feeds=[fed])
    ((one, two, three),) = step(*[tf.constant(True)] * 3)
    assert len({tuple(part.numpy()) for part in (one, two, three)}) == 3


def test_in_a_cond_in_a_cond_the_first_core_draws_what_one_device_does_and_others_do_not():
    with legacy_world(), recording(5) as graph:
        fed = tf1.placeholder(tf.bool, [])

        def inner():
            return tf1.cond(fed, lambda: tf1.random_uniform([4], seed=3), lambda: tf.zeros([4]))

        drawn = tf1.cond(fed, inner, lambda: tf.ones([4]))
    assert not can_share(RecordedGraph(graph), [drawn.op.name])
    _, step = traced(graph, [drawn], 3, feeds=[fed])
    one_device = ReplaySession(graph).run(drawn, {fed: True}).tolist()
    ((one, two, three),) = step(*[tf.constant(True)] * 3)
    assert one.numpy().tolist() == one_device
    assert len({tuple(part.numpy()) for part in (one, two, three)}) == 3


@pytest.mark.parametrize("in_branch", [False, True], ids=["outside", "in a branch"])
def test_a_program_that_asks_which_core_it_is_on_is_told(in_branch):
    """As `tpu_cross_replica_concat` does: each core puts its part in its place of the sum."""
    with legacy_world(), recording(None) as graph:
        fed = tf1.placeholder(tf.float32, [])
        number = xla.replica_id()
        if in_branch:
            number = tf1.cond(fed > 0, lambda: xla.replica_id() + 0, lambda: -1)
        parts = summed(tf.scatter_nd([[number]], [fed], [3]))
    assert not can_share(RecordedGraph(graph), [parts.op.name])
    _, step = traced(graph, [parts], 3, feeds=[fed])
    ((one, two, three),) = step(*map(tf.constant, [1.0, 10.0, 100.0]))
    assert [list(part.numpy()) for part in (one, two, three)] == [[1.0, 10.0, 100.0]] * 3


def test_streams_go_on_whether_what_draws_is_shared_or_not():
    """Summaries of some steps may keep a program from being shared; the other steps are."""
    with legacy_world(), recording(None) as graph:
        drawn = tf1.random_uniform([3], seed=2)
        shuffled = tf.random.shuffle(tf.range(3), seed=4)
    strategy = mirrored(2)
    recorded = RecordedGraph(graph)
    draws = []
    for order in ([0, 1, 0], [1, 0, 1]):
        state = State(recorded, strategy)
        models = [
            ReplicatedModel(strategy, (), (drawn.name,)),
            ReplicatedModel(strategy, (), (drawn.name, shuffled.name)),
        ]
        assert [can_share(recorded, model.roots) for model in models] == [True, False]
        steps = [
            tf.function(lambda m=m, s=state: m.trace(recorded, s, [])[0], autograph=False)
            for m in models
        ]
        draws.append([[part.numpy() for part in steps[i]()] for i in order])
    np.testing.assert_array_equal(draws[0], draws[1])
    assert len({tuple(part) for step in draws[0] for part in step}) == 6
