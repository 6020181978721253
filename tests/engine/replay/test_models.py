"""What a tf.Session does with a graph, a replay does: on one device, and on several cores.

The oracle on one device is TensorFlow's own Session; for several cores it is one device on the
same global batch.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf
from graphs import MODELS, py_func, unordered_assignment

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record.feeding import Fed
from estimator2strategy.engine.record.replicated import RecordedReplicas, one_shard_of
from estimator2strategy.engine.replay.engines import Step
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.runtime.devices import emulated_strategy
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1
STEPS, BATCH = 6, 8
FEATURES = np.random.RandomState(0).randn(STEPS, BATCH, 4).astype("float32")

# Sums over cores in another order than on one device.
CLOSE = {"rtol": 2e-5, "atol": 1e-6}


def by_name(model) -> str:
    return model.__name__


class Model:
    """A model in a graph of its own, with its features to be fed, for one device or more."""

    def __init__(self, build, cores: int = 1):
        with legacy_world(), recording(seed=3) as graph:
            tf1.train.create_global_step()
            self.features = tf1.placeholder(tf.float32, [BATCH, 4])
            self.splices, self.strategy, self.on_cores = [], None, ()
            if cores == 1:
                self.train, self.loss = build(self.features)
            else:
                self._on_cores(build, cores)
            self.train = getattr(self.train, "op", self.train)
            self.init = tf.group(tf1.global_variables_initializer(), tf1.tables_initializer())
        self.graph = graph
        self.variables = graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)

    def _on_cores(self, build, cores: int) -> None:
        parts = [[part] for part in tf.split(self.features, cores)]
        strategy = emulated_strategy(cores)
        fed = Fed(parts, (parts[0][0],), ())
        model = RecordedReplicas(
            fed, strategy, lambda features, _: build(features), inside=one_shard_of
        )
        train, loss = model.spec
        self.train, self.loss = model.runs(train), model.mean(loss)
        self.splices, self.strategy = model.splices, strategy
        self.on_cores = model.variables

    @property
    def step(self) -> Step:
        return Step(self.train.name, loss=self.loss.name)

    def replay(self) -> ReplaySession:
        recorded = RecordedGraph(self.graph)
        state = State(recorded, self.strategy, self.on_cores)
        session = ReplaySession(recorded.graph, Runs(Replay(recorded, state, self.splices)))
        session.expect(self.step, 1)
        session.run(self.init)
        return session


def trained(model: Model, session, values=None) -> tuple[list[float], dict[str, np.ndarray]]:
    """Losses of STEPS steps from `values`, and the variables after them."""
    for variable in model.variables if values else []:
        session.run(variable.initializer, {variable.initializer.inputs[1]: values[variable.name]})
    losses = [
        session.run([model.loss, model.train], {model.features: batch})[0] for batch in FEATURES
    ]
    return losses, {v.name: session.run(v) for v in model.variables}


def initial(model: Model, session) -> dict[str, np.ndarray]:
    return {v.name: session.run(v) for v in model.variables}


def one_device(build):
    """(initial values, losses, final variables) of `build` on one replayed device."""
    model = Model(build)
    session = model.replay()
    start = initial(model, session)
    return start, *trained(model, session)


@pytest.mark.oldest
@pytest.mark.parametrize("build", MODELS, ids=by_name)
def test_replay_equals_a_session(build):
    if build is unordered_assignment:
        pytest.skip("a race in a Session; see test_replay_keeps_program_order")
    start, losses, variables = one_device(build)
    model = Model(build)
    # CrossReplicaSum, the identity on one replica, has no CPU kernel: let the graph say so.
    graph = tf.Graph()
    with graph.as_default():
        graph_def = model.graph.as_graph_def()
        for node in graph_def.node:
            _to_identity(node)
        for function in graph_def.library.function:
            for node in function.node_def:
                _to_identity(node)
        tf1.import_graph_def(graph_def, name="")
        with tf1.Session() as session:
            session.run(model.init.name)
            expected, expected_variables = _run_by_name(session, model, start)
    np.testing.assert_allclose(losses, expected, rtol=1e-6, atol=1e-7)
    for name, value in expected_variables.items():
        np.testing.assert_allclose(variables[name], value, rtol=1e-6, atol=1e-7, err_msg=name)


def _to_identity(node) -> None:
    if node.op == "CrossReplicaSum":
        dtype = node.attr["T"].type
        del node.input[1]
        node.attr.clear()
        node.op, node.attr["T"].type = "Identity", dtype


def _run_by_name(session, model: Model, start):
    """`trained`, by names: the session's graph is a copy."""
    for variable in model.variables:
        value = variable.initializer.inputs[1].name
        session.run(variable.initializer.name, {value: start[variable.name]})
    fetches = [model.loss.name, model.train.name]
    losses = [session.run(fetches, {model.features.name: batch})[0] for batch in FEATURES]
    reads = {v.name: session.run(f"{v.op.name}/Read/ReadVariableOp:0") for v in model.variables}
    return losses, reads


@pytest.mark.parametrize("cores", [2, 4])
@pytest.mark.parametrize("build", [m for m in MODELS if m is not py_func], ids=by_name)
def test_cores_equal_one_device_on_the_same_global_batch(build, cores):
    start, losses, variables = one_device(build)
    model = Model(build, cores)
    session = model.replay()
    core_losses, core_variables = trained(model, session, start)
    if build.__name__ in ("cond_with_gradients", "gradient_penalty"):
        # What each core decides or differentiates on its own part is another model.
        assert np.isfinite(core_losses).all()
        return
    np.testing.assert_allclose(core_losses, losses, **CLOSE)
    for name, value in variables.items():
        np.testing.assert_allclose(core_variables[name], value, err_msg=name, **CLOSE)


@pytest.mark.parametrize("cores", [2, 8])
def test_all_cores_hold_the_same_variables_after_training(cores):
    model = Model(MODELS[0], cores)
    session = model.replay()
    trained(model, session)
    for variable in model.variables:
        node = variable.handle.op.name
        copies = [session.state.variable(node, core).numpy() for core in range(cores)]
        for copy in copies[1:]:
            np.testing.assert_array_equal(copy, copies[0], err_msg=variable.name)


@pytest.mark.oldest
def test_replay_keeps_program_order_where_a_session_races():
    _, _, variables = one_device(unordered_assignment)
    assert variables["global_step:0"] == STEPS


@pytest.mark.oldest
def test_a_block_of_steps_equals_steps_one_by_one():
    def build():
        def model(features):
            return MODELS[0](features)

        return Model(model)

    single, block = build(), build()
    one, many = single.replay(), block.replay()
    start = initial(single, one)
    for variable in block.variables:
        feed = {variable.initializer.inputs[1]: start[variable.name]}
        many.run(variable.initializer, feed)
    for _ in range(5):
        one.run(single.train, {single.features: FEATURES[0]})
    many.expect(block.step, 5)
    many.run(block.train, {block.features: FEATURES[0]})
    assert many.ran.steps == 5
    for a, b in zip(single.variables, block.variables, strict=True):
        np.testing.assert_array_equal(one.run(a), many.run(b), err_msg=a.name)


def test_two_programs_with_tables_of_one_name_do_not_share_them():
    def lookup(value: float):
        with tf.Graph().as_default() as graph:
            handle = tf.raw_ops.HashTableV2(
                key_dtype=tf.string, value_dtype=tf.float32, shared_name="the_table"
            )
            fill = tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=["a"], values=[value])
            found = tf.raw_ops.LookupTableFindV2(
                table_handle=handle, keys=["a"], default_value=-1.0
            )
        session = ReplaySession(graph)
        session.run(fill)
        return session, found

    first, found_first = lookup(1.0)
    second, found_second = lookup(2.0)
    assert first.run(found_first) == [1.0]
    assert second.run(found_second) == [2.0]


def test_seeded_dropout_differs_between_cores():
    def build(features):
        with tf1.variable_scope("m"):
            scale = tf1.get_variable("s", [], initializer=tf1.ones_initializer())
        mask = tf1.nn.dropout(tf.ones([64]), rate=0.5, seed=1) * scale
        return tf.no_op(), tf.reduce_sum(mask * 2.0 ** -tf.range(64.0))

    one, two = Model(build), Model(build, cores=2)
    alone = one.replay().run(one.loss, {one.features: FEATURES[0]})
    mean = two.replay().run(two.loss, {two.features: FEATURES[0]})
    # With equal masks the mean over the cores would be what one core has.
    assert mean != alone


@pytest.mark.oldest
def test_variables_have_no_value_before_they_are_initialised():
    with legacy_world(), recording(None) as graph:
        tf1.get_variable("v", [2])
        missing = tf1.report_uninitialized_variables()
    session = ReplaySession(graph)
    assert list(session.run(missing)) == [b"v"]


@pytest.mark.oldest
def test_a_saver_works_on_a_replay_session(tmp_path):
    model = Model(MODELS[0])
    session = model.replay()
    before = initial(model, session)
    with model.graph.as_default():
        saver = tf1.train.Saver()
        path = saver.save(session, str(tmp_path / "model.ckpt"), 7)
        trained(model, session)
        saver.restore(session, path)
    for name, value in before.items():
        np.testing.assert_array_equal(initial(model, session)[name], value, err_msg=name)


@pytest.mark.oldest
def test_fetches_and_feeds_take_every_form_a_session_takes():
    with legacy_world(), recording(None) as graph:
        x = tf1.placeholder(tf.float32, [None], name="x")
        y = tf.identity(x * 2, name="y")
        sparse = tf.sparse.from_dense(tf.constant([0, 3]))
    session = ReplaySession(graph)
    feeds = {"x:0": [1.0, 2.0]}
    assert session.run("y:0", feeds).tolist() == [2.0, 4.0]
    nested = session.run({"a": [y, (x,)], "b": sparse}, feeds)
    assert nested["a"][1][0].tolist() == [1.0, 2.0]
    assert nested["b"].values.tolist() == [3]
    with session.as_default():
        assert y.eval({x: [3.0]}).tolist() == [6.0]


def test_private_session_interface_is_what_savers_ask_for():
    assert issubclass(ReplaySession, _tf_private.SessionInterface)


@pytest.mark.oldest
def test_a_read_that_waits_for_nothing_comes_before_the_writes_of_its_step():
    """TPUEstimator's host calls count on it: they are given the step before the increment."""
    with legacy_world(), recording(None) as graph:
        step = tf1.train.create_global_step()
        write = tf1.assign_add(step, 1)
        read = tf.identity(step)
        with tf.control_dependencies([write]):
            read_after = tf.identity(step)
        init = tf1.global_variables_initializer()
    session = ReplaySession(graph)
    session.run(init)
    assert session.run([read, read_after]) == [0, 1]


def test_a_tensor_of_another_graph_is_refused():
    with tf.Graph().as_default():
        elsewhere = tf.constant(1, name="x")
    with tf.Graph().as_default() as graph:
        tf.constant(2, name="x")
    with pytest.raises(ValueError, match="not an element of this graph"):
        ReplaySession(graph).run(elsewhere)


def test_the_value_of_a_variable_is_read_without_building_a_program(monkeypatch):
    """Hooks read the global step at every block."""
    with legacy_world(), recording(None) as graph:
        variable = tf1.get_variable("v", [2], initializer=tf1.zeros_initializer())
        read = tf.identity(variable.read_value())
        with tf.control_dependencies([variable.assign_add([1.0, 2.0])]):
            after = variable.read_value()
        session = ReplaySession(graph)
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(read)
        session.run(variable.initializer)
        assert list(session.run(after)) == [1.0, 2.0]  # a write comes before it
        monkeypatch.setattr(session.runs, "run", None)
        assert list(session.run(read)) == [1.0, 2.0]


@pytest.mark.parametrize("make", ["make_one_shot_iterator", "make_initializable_iterator"])
def test_an_iterator_ends_with_its_session_though_its_generator_has_not(make):
    """Python must not be locked while an iterator is deleted: its generator ends in Python."""
    ended = threading.Event()

    def generator():
        try:
            yield from range(1000)
        finally:
            ended.set()

    with legacy_world(), recording(None) as graph:
        dataset = tf.data.Dataset.from_generator(generator, tf.int64, []).prefetch(2)
        iterator = getattr(tf1.data, make)(dataset)
        taken = iterator.get_next()
        session = ReplaySession(graph)
        if make == "make_initializable_iterator":
            session.run(iterator.initializer)
        assert session.run(taken) == 0
        session.close()
    assert ended.wait(timeout=200)
