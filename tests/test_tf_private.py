"""Each private TensorFlow symbol that the package leans on still does what it is needed for.

When a TensorFlow release breaks one of these, fix `_tf_private.py` (or the table named in the test)
before anything else: what fails further down fails because of it.
"""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import _tf_private
from estimator2strategy.record.inputs import DatasetInitializerHook
from estimator2strategy.runtime import lookahead

tf1 = tf.compat.v1
pytestmark = pytest.mark.oldest


def test_fetch_handler_flattens_fetches_and_rebuilds_results():
    with tf.Graph().as_default() as graph:
        a, op = tf.constant(1, name="a"), tf.no_op()
    handler = _tf_private.FetchHandler(graph, {"x": [a, op], "y": "a:0"}, {})
    assert handler.fetches() == [a]
    assert handler.targets() == [op]
    assert handler.build_results(None, [5]) == {"x": [5, None], "y": 5}


def test_an_uninitialized_variable_has_no_value_and_then_one():
    variable = _tf_private.UninitializedVariable(shape=tf.TensorShape([2]), dtype=tf.float32)
    assert not tf.raw_ops.VarIsInitializedOp(resource=variable.handle)
    variable.assign([1.0, 2.0])
    assert variable.numpy().tolist() == [1.0, 2.0]


def test_tensor_shapes_switch_and_come_back():
    assert isinstance(tf.TensorShape([3])[0], int)
    with _tf_private.tensor_shapes(v2=False):
        assert tf.TensorShape([3])[0].value == 3
    assert isinstance(tf.TensorShape([3])[0], int)


def test_eager_mode_reaches_out_of_a_graph():
    with tf.Graph().as_default(), _tf_private.eager_mode():
        assert tf.executing_eagerly()
        assert tf.constant(1).numpy() == 1


def test_optimizers_believe_in_the_shard_context():
    with tf.Graph().as_default() as graph, _tf_private.tpu_shard_context(4):
        total = tf1.tpu.cross_replica_sum(tf.constant(1.0))
    assert total.op.type == "CrossReplicaSum"
    assert tf.get_static_value(total.op.inputs[1]).tolist() == [[0, 1, 2, 3]]
    assert graph is total.graph


def test_control_flow_in_the_xla_context_is_functional():
    with (
        tf.Graph().as_default() as graph,
        _tf_private.control_flow_v2(),
        _tf_private.xla_control_flow_context("cores"),
    ):
        tf.cond(tf1.placeholder(tf.bool, []), lambda: 1.0, lambda: 2.0)
    types = {op.type for op in graph.get_operations()}
    assert types & {"If", "StatelessIf"}
    assert not types & {"Switch", "Merge"}


def test_capture_brings_a_tensor_into_the_function_being_traced():
    outside = tf.constant(2.0)

    @tf.function
    def inside():
        captured = _tf_private.capture(outside)
        assert captured.graph is tf1.get_default_graph()
        return captured + 1

    assert inside().numpy() == 3


def test_a_replica_context_of_our_own_reduces_through_the_strategy():
    from estimator2strategy.record.strategy import one_replica_of

    with tf.Graph().as_default() as graph, one_replica_of(2):
        context = tf.distribute.get_replica_context()
        assert context.num_replicas_in_sync == 2
        variable = tf1.get_variable("v", [], use_resource=True)
        loss = tf1.losses.compute_weighted_loss(variable * 2.0)
        tf1.train.GradientDescentOptimizer(1.0).minimize(loss)
    assert sum(op.type == "CrossReplicaSum" for op in graph.get_operations()) == 1


def test_stock_hooks_keep_the_state_that_lookahead_reads():
    """The table is `runtime.lookahead._PATIENCE`."""
    with tf.Graph().as_default():
        step = tf1.train.create_global_step()
        scaffold = tf1.train.Scaffold()
        dataset = tf1.data.make_initializable_iterator(tf.data.Dataset.range(1))
        evals = _tf_private.StopAfterNEvalsHook(num_evals=10)
        hooks = [
            tf1.train.CheckpointSaverHook("/tmp/unused", save_steps=5, scaffold=scaffold),
            tf1.train.StepCounterHook(every_n_steps=5),
            tf1.train.SummarySaverHook(save_steps=5, scaffold=scaffold),
            tf1.train.LoggingTensorHook({"step": step}, every_n_iter=5),
            tf1.train.StopAtStepHook(last_step=20),
            DatasetInitializerHook(dataset),
            evals,
        ]
        hooks[2].begin()
        hooks[3].begin()
    until = {type(hook): lookahead._PATIENCE[type(hook)](hook, 0) for hook in hooks}
    # Those with a timer trigger at their first step; the others say how far it is.
    assert until[tf1.train.StopAtStepHook] == 20
    assert until[_tf_private.StopAfterNEvalsHook] == 1
    assert until[tf1.train.CheckpointSaverHook] == 0
    for timed in (hooks[0], hooks[1]):
        timed._timer.update_last_triggered_step(3)
        assert lookahead._PATIENCE[type(timed)](timed, 4) == 4
    hooks[3]._iter_count = 0
    hooks[3]._timer.reset()
    assert lookahead._PATIENCE[type(hooks[3])](hooks[3], 0) == 1


def test_a_session_manager_takes_the_session_that_it_is_given():
    """`runtime.monitored` overrides the private method in which it makes one."""
    assert callable(tf1.train.SessionManager._restore_checkpoint)


def test_stock_hooks_take_the_global_step_read_that_is_there():
    with tf.Graph().as_default() as graph:
        tf1.train.create_global_step()
        _tf_private.add_global_step_read(graph)
        hook = tf1.train.StepCounterHook()
        hook.begin()
    (read,) = graph.get_collection("global_step_read_op_cache")
    assert hook._global_step_tensor is read
