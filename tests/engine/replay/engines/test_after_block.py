"""A block of steps on a TPU, traced: what its loop holds beside the program of the cores."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from tpu_program import make_replay

from estimator2strategy import estimator
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.engines import Request, Step
from estimator2strategy.engine.replay.engines.loop import after_block
from estimator2strategy.engine.xla.tpu_program import traced
from estimator2strategy.engine.xla.tpus import tpu_strategy
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph

pytestmark = pytest.mark.oldest

tf1 = tf.compat.v1
tpu = estimator.tpu

CORES = 4
# What takes the next batch, and counts; `Shape`, `Pack` and `Max` are of TPUStrategy, which asks
# for shapes that are static here.
FEED = {"OptionalGetValue", "If"}
COUNT = {"AddV2", "Less", "Const", "Identity", "NoOp"}
SHAPES = {"Shape", "Pack", "Max"}
LAUNCH = {"TPUReplicateMetadata", "TPUReplicatedInput", "TPUReplicatedOutput"}
LAUNCH |= {"TPUCompilationResult", "StatefulPartitionedCall"}


def input_fn(params):
    example = (tf.zeros([2]), tf.zeros([], tf.int32))
    dataset = tf.data.Dataset.from_tensors(example).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    logits = tf.matmul(features, tf1.get_variable("weights", [2, 3]))
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf1.train.get_global_step()
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, global_step=step)
    host_call = None
    if params.get("host_call"):
        host_call = (lambda loss: tf1.py_func(float, [loss[0]], tf.float64), [loss[None]])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call)


class Recorded:
    """A recorded training: its replay, and a step of it."""

    def __init__(self, **params: Any):
        per_host_v2 = tpu.InputPipelineConfig.PER_HOST_V2
        tpu_config = tpu.TPUConfig(per_host_input_for_training=per_host_v2)
        config = tpu.RunConfig(model_dir="/never/written", tpu_config=tpu_config)
        model = tpu.TPUEstimator(
            model_fn,
            config=config,
            params=params,
            train_batch_size=2 * CORES,
            strategy=tpu_strategy(1, CORES),
        )
        with recording_graph(model):
            recording = record_for(model, ModeKeys.TRAIN, input_fn)
            spec, counter = recording.spec, tf1.train.get_global_step()
            self.loss, self.op = spec.loss, spec.train_op
            self.summary = tf1.summary.scalar("loss", spec.loss)
            self.read = tf.identity(counter.read_value())
            self.labels = next(iter(recording.splices)).inputs[1]
            hooks = spec.training_hooks
            self.host_call = tf.nest.flatten([getattr(hook, "fetches", []) for hook in hooks])
            self.replay = make_replay(recording)
            self.step = Step(
                self.op.name,
                loss=self.loss.name,
                stops_at_nan=False,
                counter=counter.handle.op.name,
                keeps_loss=True,
            )

    def traced(self, *tensors: tf.Tensor) -> tuple[Any, list[Any]]:
        """(the graph of a block, the nodes of its loop's body)."""
        graph = traced(self.replay, tensors, [self.op], self.step).graph
        (loop,) = (op for op in graph.get_operations() if op.type == "While")
        body = loop.get_attr("body").name
        functions = graph.as_graph_def().library.function
        (nodes,) = (list(f.node_def) for f in functions if f.signature.name == body)
        return graph, nodes

    def after(self, *tensors: tf.Tensor | str) -> Any:
        names = (getattr(tensor, "name", tensor) for tensor in tensors)
        return after_block(self.replay, Request(tuple(names), (self.op.name,)))


@pytest.fixture(scope="module")
def training() -> Recorded:
    return Recorded()


def behind(nodes: list[Any], start: Any) -> set[str]:
    """Names of the nodes that one waits for."""
    by_name = {node.name: node for node in nodes}
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for edge in waiting.pop().input:
            name = edge.removeprefix("^").partition(":")[0]
            if name in by_name and name not in found:
                found.add(name)
                waiting.append(by_name[name])
    return found


@pytest.mark.evidence("training", "traced")
def test_the_host_does_nothing_in_the_loop_but_feed_and_launch(training):
    _, body = training.traced(training.loss, training.summary, training.read)
    found = {node.op for node in body}
    assert found >= LAUNCH | FEED
    assert found <= LAUNCH | FEED | COUNT | SHAPES


@pytest.mark.evidence("training", "traced")
def test_the_next_batch_and_the_launch_do_not_wait_for_one_another(training):
    _, body = training.traced(training.loss)
    (take,) = (node for node in body if node.op == "If")
    (launch,) = (node for node in body if node.op == "StatefulPartitionedCall")
    assert take.name not in behind(body, launch)
    assert launch.name not in behind(body, take)


@pytest.mark.evidence("training", "traced")
def test_no_launch_waits_for_what_another_one_returned(training):
    graph, body = training.traced(training.loss)
    (loop,) = (op for op in graph.get_operations() if op.type == "While")
    function = next(
        f
        for f in graph.as_graph_def().library.function
        if f.signature.name == loop.get_attr("body").name
    )
    floats = {a.name for a in function.signature.input_arg if a.type == tf.float32.as_datatype_enum}
    assert len(floats) == CORES  # the losses of the step before
    used = {edge.removeprefix("^").partition(":")[0] for node in body for edge in node.input}
    assert not floats & used


@pytest.mark.evidence("training", "traced")
def test_the_losses_are_merged_when_the_block_is_done(training):
    graph, _ = training.traced(training.loss)
    (merged,) = (op for op in graph.get_operations() if op.type == "AddN")
    assert {tensor.op.type for tensor in merged.inputs} == {"While"}


def test_what_asks_the_host_at_every_step_is_not_put_off(training):
    assert training.after(training.loss, training.summary, training.read)
    assert training.after(training.loss, training.labels) is None  # of a batch
    with_host_call = Recorded(host_call=True)
    assert with_host_call.after(with_host_call.loss)
    assert with_host_call.after(with_host_call.loss, *with_host_call.host_call) is None


def test_a_host_call_runs_in_the_loop_beside_the_next_batch():
    training = Recorded(host_call=True)
    _, body = training.traced(training.loss, *training.host_call)
    (call,) = (node for node in body if node.op == "PyFunc")
    (take,) = (node for node in body if node.op == "If")
    assert take.name not in behind(body, call)
    assert call.name not in behind(body, take)
