"""`record`: one way from a program, and what it runs on, to a Recording."""

from __future__ import annotations

import dataclasses

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.model_program import ModelProgram, ReplacedCalls
from estimator2strategy.engine.record.multi_worker import Worker
from estimator2strategy.engine.record.on_host import FedReplica, OnHost
from estimator2strategy.engine.record.on_replicas import OnReplicas
from estimator2strategy.engine.record.recording import record
from estimator2strategy.engine.record.recording_strategy import one_replica_of
from estimator2strategy.engine.runtime.devices import emulated_strategy
from estimator2strategy.engine.worlds import legacy_world, recording
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph

tf1 = tf.compat.v1
pytestmark = pytest.mark.oldest


def linear(features, labels, mode, params):
    """A weight for each example's number, and a seen list of what model_fn was given."""
    weight = tf1.get_variable("weight", [params["units"]])
    output = tf.reduce_sum(features * weight, name="output")
    step = tf1.train.get_global_step()
    return estimator.EstimatorSpec(
        mode,
        predictions={"output": output},
        loss=output,
        train_op=step.assign_add(1),
        eval_metric_ops={},
    )


def batches():
    return tf.data.Dataset.from_tensors(tf.ones([2])).repeat(4)


def program(**kwargs):
    return ModelProgram(
        linear, {"units": 2}, estimator.RunConfig(), estimator.EstimatorSpec, **kwargs
    )


def recorded(program, placement, mode, input_fn=batches):
    with legacy_world(), recording(seed=1):
        return record(program, placement, mode, input_fn)


def types(recording):
    return {op.type for op in recording.graph.get_operations()}


@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT])
def test_on_the_host_model_fn_gets_what_input_fn_made(mode):
    found = recorded(program(), OnHost(), mode)
    assert found.spec.mode == mode
    assert found.strategy is found.worker is None
    assert not found.splices
    assert len(found.input_hooks) == 1
    product = found.graph.get_operation_by_name("output").inputs[0].op
    assert product.inputs[0].op.type == "IteratorGetNext"


@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL])
def test_on_replicas_each_takes_a_batch_of_its_own(emulated_cores, mode):
    emulated_cores(2)
    strategy = emulated_strategy(2)
    found = recorded(program(), OnReplicas(strategy), mode)
    assert found.strategy is strategy
    assert "weight" in found.replicated
    assert len(found.splices) == 1
    batches_of_a_step = [op for op in found.graph.get_operations() if op.type == "IteratorGetNext"]
    assert len(batches_of_a_step) == 2


def test_a_worker_is_one_replica_whose_loss_is_summed():
    contexts = []

    def input_fn(input_context):
        contexts.append((input_context.num_input_pipelines, input_context.input_pipeline_id))
        return batches()

    found = recorded(program(), Worker(1, 3), ModeKeys.TRAIN, input_fn)
    assert contexts == [(3, 1)]
    assert found.worker == Worker(1, 3)
    assert "CrossReplicaSum" in types(found)


def test_a_fed_replica_gets_placeholders_of_the_kind_that_input_fn_names():
    found = recorded(
        program(), FedReplica(), ModeKeys.TRAIN, lambda: (tf.TensorSpec([None, 2], tf.float32),)
    )
    (feed,) = found.feeds
    assert (feed.op.type, feed.shape.as_list()) == ("Placeholder", [None, 2])
    assert found.graph.get_operation_by_name("output").inputs[0].op.inputs[0] is feed
    assert not found.input_hooks


def test_a_fed_replica_is_one_of_those_of_the_caller():
    seen = []

    def counting(features):
        seen.append(tf.distribute.get_strategy().num_replicas_in_sync)
        return linear(features, None, ModeKeys.PREDICT, {"units": 2})

    counted = dataclasses.replace(program(), model_fn=counting)
    spec = tf.TensorSpec([2], tf.float32)
    recorded(counted, FedReplica(3, one_replica_of), ModeKeys.PREDICT, lambda: (spec,))
    assert seen == [3]


def test_programs_and_placements_are_frozen():
    for value in (program(), OnHost(), Worker(0, 2), FedReplica()):
        field = next(iter(dataclasses.fields(value)), None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name if field else "mode", None)


def test_functions_get_copies_of_the_parameters():
    given = program()

    def input_fn(params, config):
        params["units"] = 7
        config._model_dir = "elsewhere"
        return batches()

    recorded(given, OnHost(), ModeKeys.TRAIN, input_fn)
    assert given.params == {"units": 2}
    assert given.config.model_dir != "elsewhere"


def test_what_is_no_spec_is_refused():
    other = dataclasses.replace(program(), model_fn=lambda features: features)
    with pytest.raises(ValueError, match="model_fn should return an EstimatorSpec"):
        recorded(other, OnHost(), ModeKeys.TRAIN)


def test_calls_that_a_program_replaced_are_its_own():
    seen = []

    def own_input(input_fn, mode):
        seen.append(("input_fn", mode))
        return input_fn()

    def own_model(features, labels, mode, config):
        seen.append(("model_fn", mode))
        return linear(features, labels, mode, {"units": 2})

    def own_step(graph):
        seen.append("global step")
        return tf1.train.create_global_step(graph)

    replaced = ReplacedCalls(own_input, own_model, own_step)
    recorded(program(replaced=replaced), OnHost(), ModeKeys.TRAIN)
    assert seen == ["global step", ("input_fn", "train"), ("model_fn", "train")]


class Watching(estimator.Estimator):
    """Looks at what model_fn is given, and makes the input itself."""

    def _call_model_fn(self, features, labels, mode, config):
        self.seen = (features.shape, mode, config.tf_random_seed)
        return super()._call_model_fn(features, labels, mode, config)

    def _call_input_fn(self, input_fn, mode):
        return super()._call_input_fn(input_fn, mode).map(lambda x: x + 1)

    def _create_and_assert_global_step(self, graph):
        self.graph = graph
        return super()._create_and_assert_global_step(graph)


def test_methods_of_a_subclass_are_called_and_may_call_those_of_estimator(model_dir):
    config = estimator.RunConfig(model_dir, tf_random_seed=3)
    model = Watching(linear, config=config, params={"units": 2})
    with recording_graph(model) as graph:
        found = record_for(model, ModeKeys.EVAL, batches)
    assert found.graph is graph is model.graph
    assert model.seen == ([2], "eval", 3)
    assert "MapDataset" in types(found)


def test_a_method_may_be_replaced_in_an_instance(model_dir):
    model = estimator.Estimator(linear, model_dir, params={"units": 2})
    assert model.e2s_parts.program.replaced == ReplacedCalls()
    seen, call = [], model._call_model_fn

    def watched(*args):
        seen.append(args[2])
        return call(*args)

    model._call_model_fn = watched
    model.train(batches, steps=1)
    assert seen == ["train"]
