"""A traced train function against its recording."""

from __future__ import annotations

import collections
import types

import pytest
import tensorflow as tf
from legacy_models import dense_net, recorded, with_extra

from estimator2strategy.engine.worlds import legacy_world
from estimator2strategy.engine.xla.core_program import core_program
from estimator2strategy.engine.xla.tpu_program import TpuProgram, train_program
from estimator2strategy.engine.xla.tpu_trace import differences

pytestmark = pytest.mark.oldest
tf1 = tf.compat.v1


def both(model_fn, **how):
    recording = recorded(model_fn, **how)
    with legacy_world(), recording.graph.as_default():
        return train_program(recording), core_program(recording)


def looping(x):
    total = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * 2.0), [0, x[0, 0]])[1]
    return tf.cond(total > 0, lambda: total * 2.0, lambda: total)


def call_python(x):
    return tf.numpy_function(lambda v: v, [x[0, 0]], tf.float32)


@pytest.mark.parametrize("model_fn", [dense_net, with_extra(looping)], ids=["dense", "loops"])
@pytest.mark.parametrize("cores", [1, 8])
@pytest.mark.evidence("training", "traced")
def test_nothing_is_otherwise_in_a_train_function(model_fn, cores):
    sent, program = both(model_fn, cores=cores)
    assert sent.replicas == cores
    assert differences(sent, program) == []


def test_a_function_of_the_host_is_found_at_its_node():
    sent, program = both(with_extra(call_python))
    (difference,) = differences(sent, program)
    assert difference.sentence == "PyFunc is in it, and no core can run that"
    assert program.recorded[difference.node].op == "PyFunc"


@pytest.fixture(scope="module")
def traced():
    return both(dense_net)


def changed(sent: TpuProgram, **attributes):
    """What is read of a program, with some of it otherwise."""
    names = ("replicas", "variables", "nodes")
    known = {name: getattr(sent, name) for name in names}
    groups = attributes.pop("groups", sent.group_assignments())
    return types.SimpleNamespace(**{**known, **attributes}, group_assignments=lambda: groups)


def without(nodes, op):
    left = list(nodes)
    left.remove(next(node for node in nodes if node.op == op))
    return left


def sentences(sent, program):
    return [difference.sentence for difference in differences(sent, program)]


def test_each_kind_of_difference_is_said(traced):
    sent, program = traced
    count = collections.Counter(node.op for node in sent.nodes)
    assert sentences(changed(sent, replicas=4), program) == [
        "it runs on 4 replicas, and was recorded for 8"
    ]
    assert sentences(changed(sent, groups=[[[0, 1]]]), program) == [
        "a sum is over [[0, 1]], and not over all of 8 cores"
    ]
    assert sentences(changed(sent, variables=sent.variables[1:]), program) == [
        f"cores are given {len(sent.variables) - 1} variables, and the model uses "
        f"{len(program.variables)}"
    ]
    for op in ("CrossReplicaSum", "ResourceApplyAdam", "MatMul"):
        assert sentences(changed(sent, nodes=without(sent.nodes, op)), program) == [
            f"{op}: {count[op] - 1} times, and {count[op]} times in the recording"
        ]
    for op in ("ResourceApplyAdam", "AssignAddVariableOp"):
        (update,) = (node for node in sent.nodes if node.op == op)
        assert sentences(changed(sent, nodes=[*sent.nodes, update]), program) == [
            f"{op}: 2 times, and 1 times in the recording"
        ]
