"""The part of a recording that one core runs."""

from __future__ import annotations

import pytest
import tensorflow as tf
from legacy_models import BATCH, CLASSES, FEATURES, dense_net, input_fn, program_of

from estimator2strategy import estimator
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.replicas import ReplicatedModel
from estimator2strategy.engine.xla.core_program import _of_model, core_program
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph

tf1 = tf.compat.v1


def test_a_core_is_given_its_part_of_the_batch():
    program = program_of(dense_net)
    assert program.replicas == 8
    shapes = [program.spec(name).shape.as_list() for name in program.feeds]
    assert shapes == [[BATCH // 8, FEATURES], [BATCH // 8]]


def test_it_has_the_variables_of_the_mode():
    names = {"weights", "weights/Adam", "weights/Adam_1", "beta1_power", "beta2_power"}
    assert set(program_of(dense_net).variables) == {*names, "global_step"}
    assert program_of(dense_net, "eval").variables == ["weights"]
    assert program_of(dense_net, "predict").variables == ["weights"]


def test_it_runs_neither_what_feeds_it_nor_what_the_host_does():
    types = {n: program_of(dense_net, n) for n in ("train", "eval", "predict")}
    ops = {mode: {p.recorded[name].op for name in p.nodes} for mode, p in types.items()}
    for of_mode in ops.values():
        assert "MatMul" in of_mode
        assert not of_mode & {"Placeholder", "VarHandleOp", "IteratorGetNext", "ArgMax"}
    assert "ResourceApplyAdam" in ops["train"]
    assert "CrossReplicaSum" in ops["train"]


def test_a_model_recorded_for_the_host_is_fed_where_it_draws_its_batch():
    def model_fn(features, labels, mode):
        spec = dense_net(features, labels, mode, {})
        return spec.as_estimator_spec()

    model = estimator.Estimator(model_fn, "/never/written")
    with recording_graph(model):
        recording = record_for(model, ModeKeys.TRAIN, lambda: input_fn({"batch_size": 5}))
    spec = recording.spec
    program = core_program(recording, [spec.loss], [spec.train_op])
    assert program.replicas == 1
    assert [program.spec(n).shape.as_list() for n in program.feeds] == [[5, FEATURES], [5]]
    assert program.spec("weights/Read/ReadVariableOp:0").shape == [FEATURES, CLASSES]
    assert "IteratorGetNext" not in {program.recorded[name].op for name in program.nodes}


def test_a_replica_of_several_cores_is_refused():
    model = ReplicatedModel(None, (), (), (), partitions=((1, 2),))
    with pytest.raises(UnsupportedError, match="num_cores_per_replica"):
        _of_model(RecordedGraph(tf.Graph()), model)
