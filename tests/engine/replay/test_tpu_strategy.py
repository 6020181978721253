"""A genuine TPUStrategy, traced: what a TPU worker would be sent. There is no TPU to run it."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tpu_program import make_replay, traced_training

from estimator2strategy import estimator
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.engines.step import Step
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.xla.tpu_program import TpuProgram, traced
from estimator2strategy.engine.xla.tpus import tpu_strategy
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from tests.strategies import mirrored

pytestmark = pytest.mark.oldest

tf1 = tf.compat.v1
tpu = estimator.tpu
Pipeline = tpu.InputPipelineConfig
CORES_PER_HOST = 8
FEATURES, CLASSES = 4, 3

on_one_and_two_hosts = pytest.mark.parametrize("num_hosts", [1, 2])


# A legacy program: moving averages, dropout, a branch, an optimizer with slots, a host_call.


class Program:
    """A model_fn and an input_fn, and what they saw.

    Attributes:
        contexts: Per call of input_fn: (current_host, batch_size, current_input_fn_deployment()).
        recorded: Names of the ops that model_fn wants each core to run.
    """

    def __init__(self, dataset: bool = True):
        self.contexts: list[tuple[int, int, tuple]] = []
        self.recorded: list[str] = []
        self._dataset = dataset

    def input_fn(self, params):
        context = params["context"]
        self.contexts.append(
            (context.current_host, params["batch_size"], context.current_input_fn_deployment())
        )
        features = np.zeros([64, FEATURES], np.float32)
        labels = np.zeros([64], np.int32)
        dataset = tf.data.Dataset.from_tensor_slices((features, labels)).repeat()
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        if self._dataset:
            return dataset
        return tf1.data.make_one_shot_iterator(dataset).get_next()

    def model_fn(self, features, labels, mode, params):
        weights = tf1.get_variable("weights", [FEATURES, CLASSES])
        average = tf1.get_variable("average", [FEATURES], trainable=False)
        moved = tf1.assign_sub(average, 0.1 * (average - tf.reduce_mean(features, 0)))
        with tf1.device(params["context"].tpu_host_placement_function(0)):
            logits = tf.matmul(tf1.nn.dropout(features, rate=0.1, seed=1), weights)
        if mode == ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == ModeKeys.EVAL:
            self.recorded = [loss.op.name, logits.op.name]
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
        step = tf1.train.get_global_step()
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(1e-3))
        with tf.control_dependencies([moved]):
            train_op = optimizer.minimize(loss, global_step=step)
        self.recorded = [loss.op.name, train_op.name]
        reported = [tf.reshape(step, [1]), tf.reshape(loss, [1])]
        self.recorded += [tensor.op.name for tensor in reported]
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=(host_fn, reported)
        )


def metric_fn(labels, logits):
    return {"accuracy": tf1.metrics.accuracy(labels, tf1.argmax(logits, 1))}


def host_fn(step, loss):
    calls = tf1.get_variable("host_calls", [], tf.int32, tf1.zeros_initializer())
    text = tf.strings.as_string(tf.reduce_mean(loss), name="loss_text")
    written = tf1.py_func(lambda *values: values[1], [step, text], tf.string, name="write")
    with tf.control_dependencies([written]):
        count = tf.identity(tf1.assign_add(calls, 1))
    return [written, count, tf1.train.get_global_step().read_value()]


def make_estimator(
    program: Any,
    num_hosts: int = 1,
    pipeline: Any = Pipeline.PER_HOST_V2,
    model_dir: str = "/never/written",
):
    batch_size = 8 * num_hosts * CORES_PER_HOST
    tpu_config = tpu.TPUConfig(iterations_per_loop=5, per_host_input_for_training=pipeline)
    return tpu.TPUEstimator(
        program.model_fn,
        config=tpu.RunConfig(model_dir=model_dir, tpu_config=tpu_config),
        train_batch_size=batch_size,
        eval_batch_size=batch_size,
        predict_batch_size=batch_size,
        strategy=tpu_strategy(num_hosts, CORES_PER_HOST),
    )


def train_program(
    program: Any, num_hosts: int = 1, pipeline: Any = Pipeline.PER_HOST_V2
) -> tuple[TpuProgram, Replay]:
    return traced_training(make_estimator(program, num_hosts, pipeline), program.input_fn)


@pytest.fixture(
    scope="module",
    params=[1, 2, 4, pytest.param(32, marks=pytest.mark.slow)],
    ids=["1 host", "2 hosts", "4 hosts", "32 hosts"],
)
def train(request) -> tuple[TpuProgram, Replay, Program, int]:
    program = Program()
    return (*train_program(program, request.param), program, request.param)


# The program.


@pytest.mark.evidence("training", "traced")
@pytest.mark.evidence("hosts", "traced")
def test_one_program_runs_on_every_core(train):
    program, _, _, num_hosts = train
    assert program.replicas == num_hosts * CORES_PER_HOST
    assert program.metadata.attr["num_cores_per_replica"].i == 1


def test_a_step_is_the_recorded_graph_node_by_node(train):
    program, replay, legacy, _ = train
    recorded = replay.recorded
    behind = {
        name
        for name in recorded.ancestors(legacy.recorded)
        if recorded[name].op not in ("VarHandleOp", "Placeholder")
    }
    prefix = "replay/"
    replayed = {
        node.name.removeprefix(prefix): node
        for node in program.step.node_def
        if node.name.startswith(prefix)
    }
    assert set(replayed) == behind
    for name, node in replayed.items():
        assert node.op == recorded[name].op
        assert node.device == ""
        wanted = [input_node(e) for e in recorded[name].input if e[0] != "^"]
        sources = [input_node(e).removeprefix(prefix) for e in node.input if e[0] != "^"]
        assert len(sources) == len(wanted)
        assert all(s == w for s, w in zip(sources, wanted) if w in behind)
        for key in ("dtype", "T", "value", "seed", "seed2", "transpose_a", "transpose_b"):
            assert node.attr[key] == recorded[name].attr[key], (name, key)


def test_optimizer_and_averages_are_updated_once_per_step(train):
    program, *_ = train
    counts = collections.Counter(node.op for node in program.nodes)
    assert counts["ResourceApplyAdam"] == 1
    assert counts["AssignSubVariableOp"] == 1  # the average
    assert counts["AssignVariableOp"] == 2 + 1  # Adam's beta powers, and a gauge
    assert counts["AssignAddVariableOp"] == 1  # global_step


@pytest.mark.evidence("training", "traced")
def test_cross_replica_sums_stay_native_and_span_all_cores(train):
    program, replay, legacy, num_hosts = train
    recorded = [replay.recorded[name].op for name in replay.recorded.ancestors(legacy.recorded)]
    sums = recorded.count("CrossReplicaSum")
    assert sums == 1  # one gradient
    everyone = [list(range(num_hosts * CORES_PER_HOST))]
    assert program.group_assignments() == [everyone] * sums


def test_cores_run_nothing_that_only_a_host_can(train):
    program, *_ = train
    for node in program.nodes:
        assert "PyFunc" not in node.op
        assert "Summary" not in node.op
        assert "Iterator" not in node.op
        types = [attr.type for attr in node.attr.values()]
        assert tf.string.as_datatype_enum not in types


# What enters and leaves it.


def test_every_variable_of_the_model_enters_as_each_cores_own_copy(train):
    program, *_ = train
    names = {node.name.removesuffix("/handle").removeprefix("while/") for node in program.variables}
    assert names == {
        "weights",
        "weights/Adam",
        "weights/Adam_1",
        "beta1_power",
        "beta2_power",
        "average",
        "global_step",
    }
    for node in program.variables:
        copies = 1 if node.attr["is_packed"].b else program.replicas
        handles = [edge for edge in node.input if edge[0] != "^"]
        assert len(handles) == node.attr["N"].i == copies
        # The copies may differ (averages do), so the compiler must not take them for equal.
        assert not node.attr["is_mirrored_variable"].b


def test_nothing_enters_but_variables_the_batch_and_the_replicas_number(train):
    program, *_ = train
    entering = {program.source(edge).op for _, edge in program.edges_into() if edge[0] != "^"}
    assert entering == {"TPUReplicatedInput"}
    # The batch is two tensors; each core has a gauge.
    assert len(program.inputs) == len(program.variables) + 2 + 1 + 1


def test_each_core_gets_the_next_batch_of_its_host(train):
    program, _, _, num_hosts = train
    features, labels = program.batch
    if num_hosts == 1:  # all cores' batches were taken ahead, in their order
        assert {node.op for node in [*features, *labels]} == {"OptionalGetValue"}
        edges = [edge for node in program.inputs[1:3] for edge in node.input]
        cores = range(program.replicas)
        expected = [f"components:{2 * core + part}" for part in (0, 1) for core in cores]
        assert [edge.partition(":")[2] for edge in edges] == expected
        return
    takers = [node for node in program.outside if node.op == "IteratorGetNext"]
    assert len(takers) == program.replicas
    assert features == labels == takers
    assert [node.device for node in takers] == [
        f"/job:worker/task:{replica // CORES_PER_HOST}/device:CPU:0"
        for replica in range(program.replicas)
    ]


@pytest.mark.evidence("host_call", "traced")
def test_host_call_runs_beside_the_program(train):
    program, *_ = train
    outside = collections.Counter(node.op for node in program.outside)
    assert outside["PyFunc"] == outside["AsString"] == 1
    (text,) = (node for node in program.outside if node.op == "AsString")
    assert text.name.endswith("loss_text")


def test_the_host_reads_variables_of_the_model_after_the_program_wrote_them(train):
    program, *_ = train
    reads = [node for node in program.outside if node.op == "ReadVariableOp"]
    assert len(reads) == 2  # global_step and host_calls, each without an input but its handle
    for read in reads:
        assert program.metadata.name in program.behind(read)


def test_what_the_host_reads_after_a_block_waits_for_the_block():
    program = Program()
    estimator_ = make_estimator(program)
    with recording_graph(estimator_):
        recording = record_for(estimator_, ModeKeys.TRAIN, program.input_fn)
        counter = tf1.train.get_global_step(recording.graph).handle.op.name
        spec = recording.spec
        fetches = tf.nest.flatten([getattr(hook, "fetches", []) for hook in spec.training_hooks])
        step = Step(spec.train_op.name, loss=spec.loss.name, counter=counter, keeps_loss=True)
        replay = make_replay(recording)
        graph = traced(replay, [spec.loss, *fetches], [spec.train_op], step).graph
    operations = graph.get_operations()
    (block,) = (op for op in operations if "While" in op.type)
    uses = [
        op
        for op in operations
        if op is not block and any(tensor.dtype == tf.resource for tensor in op.inputs)
    ]
    before_block = _behind(block)
    assert {op.type for op in uses if op in before_block} == {"IteratorGetNextAsOptional"}
    after_block = [op for op in uses if op not in before_block]
    assert {op.type for op in after_block} == {"ReadVariableOp", "If"}  # If: keeps the loss
    assert all(block in _behind(op) for op in after_block)


def _behind(operation) -> set[Any]:
    """All that an operation waits for."""
    found: set[Any] = set()
    waiting = [operation]
    while waiting:
        op = waiting.pop()
        before = {*op.control_inputs, *(tensor.op for tensor in op.inputs)} - found
        found |= before
        waiting += before
    return found


# State.


def test_initial_values_reach_all_cores():
    _, replay = train_program(Program())
    for name in ("weights", "average"):
        copies = [replay.state.variable(name, core) for core in range(CORES_PER_HOST)]
        assert len({id(copy) for copy in copies}) == CORES_PER_HOST
        assert np.any(copies[0].numpy())
        for copy in copies[1:]:
            np.testing.assert_array_equal(copy.numpy(), copies[0].numpy())


def test_variables_of_the_model_are_the_strategys_and_others_the_hosts():
    _, replay = train_program(Program())
    weights = replay.state.tpu_variable("weights")
    assert weights.synchronization is tf.VariableSynchronization.ON_READ
    assert weights.aggregation is tf.VariableAggregation.ONLY_FIRST_REPLICA
    assert weights.distribute_strategy.num_replicas_in_sync == CORES_PER_HOST
    assert replay.state.tpu_variable("host_calls") is None
    first = replay.state.variable("host_calls", 0)
    assert replay.state.variable("host_calls", 7) is first
    assert first.device.endswith("CPU:0")


def test_variables_on_cores_have_no_value_before_they_are_given_one():
    program = Program()
    estimator_ = make_estimator(program)
    with recording_graph(estimator_):
        recording = record_for(estimator_, ModeKeys.TRAIN, program.input_fn)
    state = State(RecordedGraph(recording.graph), recording.strategy, recording.replicated)
    handle = state.variable("weights", 3).handle
    assert not tf.raw_ops.VarIsInitializedOp(resource=handle)


def test_training_goes_as_far_as_it_can_without_a_tpu(model_dir):
    program = Program()
    estimator_ = make_estimator(program, model_dir=model_dir)
    with pytest.raises(tf.errors.InvalidArgumentError, match="TPUReplicatedInput"):
        estimator_.train(program.input_fn, max_steps=10)
    assert estimator_.get_variable_value("global_step") == 0  # saved before the first step
    assert np.any(estimator_.get_variable_value("weights"))


# Input pipelines.


@on_one_and_two_hosts
@pytest.mark.evidence("inputs", "traced")
def test_per_host_v2_calls_input_fn_once_per_host_with_the_batch_size_of_a_core(num_hosts):
    program = Program()
    train_program(program, num_hosts)
    assert [context[:2] for context in program.contexts] == [(h, 8) for h in range(num_hosts)]
    job = "localhost" if num_hosts == 1 else "worker"
    for host, (_, _, deployment) in enumerate(program.contexts):
        assert deployment == (f"/job:{job}/task:{host}/device:CPU:0", host, num_hosts, 8)


@on_one_and_two_hosts
@pytest.mark.evidence("inputs", "traced")
def test_per_host_v1_splits_each_hosts_batch_on_that_host(num_hosts):
    legacy = Program()
    program, _ = train_program(legacy, num_hosts, Pipeline.PER_HOST_V1)
    assert [context[:2] for context in legacy.contexts] == [(h, 64) for h in range(num_hosts)]
    # The batch of the only host was taken ahead.
    taken_by = "OptionalGetValue" if num_hosts == 1 else "IteratorGetNext"
    features, _ = program.batch
    assert [node.op for node in features] == ["Split"] * program.replicas
    takers = [program.source(node.input[1]) for node in features]
    assert {node.op for node in takers} == {taken_by}
    tasks = [tf.DeviceSpec.from_string(node.device).task for node in features]
    assert tasks == [replica // CORES_PER_HOST for replica in range(program.replicas)]
    assert len({(task, node.name) for task, node in zip(tasks, takers)}) == num_hosts
    assert len({node.name for node in takers}) == num_hosts


@pytest.mark.evidence("inputs", "traced")
def test_per_shard_v1_calls_input_fn_for_every_core_on_its_host():
    legacy = Program(dataset=False)
    program, _ = train_program(legacy, 2, Pipeline.PER_SHARD_V1)
    hosts = [0] * CORES_PER_HOST + [1] * CORES_PER_HOST
    assert [context[0] for context in legacy.contexts] == hosts
    assert [context[2][1:] for context in legacy.contexts] == [(i, 16, 1) for i in range(16)]
    features, _ = program.batch
    assert [tf.DeviceSpec.from_string(node.device).task for node in features] == hosts


@pytest.mark.evidence("inputs", "traced")
def test_broadcast_calls_input_fn_once_and_gives_all_cores_the_same():
    legacy = Program()
    program, _ = train_program(legacy, 2, Pipeline.BROADCAST)
    assert [context[:2] for context in legacy.contexts] == [(0, 128)]
    features, _ = program.batch
    assert len(features) == 16
    assert all(node == features[0] for node in features)


# Evaluation and prediction.


@on_one_and_two_hosts
@pytest.mark.evidence("evaluation", "traced")
@pytest.mark.evidence("hosts", "traced")
def test_evaluation_hands_the_global_batch_to_the_host(num_hosts):
    legacy = Program()
    estimator_ = make_estimator(legacy, num_hosts)
    with recording_graph(estimator_):
        recording = record_for(estimator_, ModeKeys.EVAL, legacy.input_fn)
        replay = make_replay(recording)
        spec = recording.spec
        _, update = spec.eval_metric_ops["accuracy"]
        function = traced(replay, [spec.loss], [update.op])
    program = TpuProgram(function)
    assert program.replicas == num_hosts * CORES_PER_HOST
    assert not program.ops("CrossReplicaSum")
    assert not program.ops("AssignAddVariableOp")  # the metric's are the host's
    merged = [
        [program.source(edge).op for edge in node.input][:-1]
        for node in program.outside
        if node.op == "ConcatV2"
    ]
    assert merged == [["Identity"] * program.replicas] * 2  # labels and logits


@pytest.mark.evidence("prediction", "traced")
def test_prediction_pads_and_joins_outside_the_program():
    legacy = Program()
    estimator_ = make_estimator(legacy)
    with recording_graph(estimator_):
        recording = record_for(estimator_, ModeKeys.PREDICT, legacy.input_fn)
        replay = make_replay(recording)
        function = traced(replay, [recording.spec.predictions["logits"]])
    program = TpuProgram(function)
    assert program.replicas == CORES_PER_HOST
    assert len(program.batch) == 2  # features and labels; the padding stays on the host
    assert function.structured_outputs[0].shape.as_list() == [None, CLASSES]


def test_prediction_on_several_hosts_is_refused_as_it_was():
    program = Program()
    predictions = make_estimator(program, 2).predict(program.input_fn)
    with pytest.raises(ValueError, match="predict is only supported under three") as raised:
        next(predictions)
    assert "InputPipelineConfig.BROADCAST), or use one host for this call." in str(raised.value)


# Models that are less simple.


@pytest.mark.evidence("branches", "traced")
def test_sums_in_a_branch_stay_native_too():
    class Accumulating(Program):
        def model_fn(self, features, labels, mode, params):
            weights = tf1.get_variable("weights", [FEATURES, CLASSES])
            logits = tf.matmul(features, weights)
            loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
            step = tf1.train.get_global_step()
            (gradient,) = tf1.gradients(loss, [weights])

            def apply():
                return weights.assign_sub(tf1.tpu.cross_replica_sum(gradient), read_value=False)

            every_other = tf1.cond(tf.equal(step % 2, 0), apply, tf.no_op)
            with tf.control_dependencies([every_other]):
                train_op = tf1.assign_add(step, 1)
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    program, _ = train_program(Accumulating())
    assert program.group_assignments() == [[list(range(CORES_PER_HOST))]]
    assert len(program.ops("CollectiveReduce")) == 0


@pytest.mark.evidence("refusals", "traced")
def test_a_table_in_model_fn_is_refused_with_the_users_line():
    class Looking(Program):
        def model_fn(self, features, labels, mode, params):
            table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer([0], [0]), default_value=0
            )
            logits = tf.matmul(features, tf1.get_variable("weights", [FEATURES, CLASSES]))
            loss = tf1.losses.sparse_softmax_cross_entropy(table.lookup(labels), logits)
            optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
            train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    with pytest.raises(UnsupportedError, match=r"test_tpu_strategy\.py:\d+") as error:
        train_program(Looking())
    assert "Use it in input_fn" in str(error.value)


# The strategy's hosts.


def test_hosts_of_a_tpu_strategy():
    assert devices.hosts(tpu_strategy(1, 4)) == (
        devices.Host("/job:localhost/task:0/device:CPU:0", (0, 1, 2, 3)),
    )
    assert devices.hosts(tpu_strategy(2, 2)) == (
        devices.Host("/job:worker/task:0/device:CPU:0", (0, 1)),
        devices.Host("/job:worker/task:1/device:CPU:0", (2, 3)),
    )


def test_any_other_strategy_has_this_process_as_its_host():
    assert devices.hosts(None) == (devices.Host("", (0,)),)
    assert devices.hosts(mirrored(2)) == (devices.Host("", (0, 1)),)


def test_model_fn_finds_its_replicas_hosts_in_the_context():
    found = []

    class Asking(Program):
        def model_fn(self, features, labels, mode, params):
            context = params["context"]
            found.append((context.num_hosts, context.num_of_replicas_per_host))
            found.append(context.device_for_replica(9))
            found.append(context.tpu_host_placement_function(host_id=1))
            return super().model_fn(features, labels, mode, params)

    train_program(Asking(), 2)
    host = "/job:worker/task:1/device:CPU:0"
    assert found == [(2, 8), (host, 1), host]


def test_summaries_of_a_replica_are_made_on_the_host():
    def model_fn(features, labels, mode):
        weight = tf1.get_variable("weight", [])
        loss = tf.reduce_mean(features) * weight
        tf1.summary.scalar("loss_of_a_replica", loss)
        tf1.summary.histogram("features", features)
        optimizer = tf1.train.GradientDescentOptimizer(1.0)
        train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        return tf.data.Dataset.from_tensors(tf.ones([4])).repeat()

    model = estimator.Estimator(model_fn, "/never/written", strategy=tpu_strategy(1, 2))
    with recording_graph(model):
        recording = record_for(model, ModeKeys.TRAIN, input_fn)
        merged = tf1.summary.merge_all()
        function = traced(make_replay(recording), [merged], [recording.spec.train_op])
    program = TpuProgram(function)
    types = {"ScalarSummary", "HistogramSummary", "MergeSummary"}
    assert not types.intersection(node.op for node in program.nodes)
    assert types.issubset(node.op for node in program.outside)
