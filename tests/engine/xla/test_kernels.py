"""Ops that XLA cannot compile, all at once."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from legacy_models import dense_net, program_of, with_extra

from estimator2strategy.engine.xla.core_program import unsupported

pytestmark = pytest.mark.oldest
tf1 = tf.compat.v1


@pytest.mark.parametrize("mode", ["train", "eval", "predict"])
def test_all_of_an_ordinary_model_can_be_compiled(mode):
    assert unsupported(program_of(dense_net, mode)) == []


def test_all_are_named_at_once_in_their_order():
    def extra(x):
        text = tf.strings.to_number(tf.strings.as_string(tf.reduce_sum(x)))
        called = tf1.py_func(lambda v: np.float32(v), [text], tf.float32)
        called.set_shape([])
        return called + tf.reduce_sum(tf.linalg.sqrtm(tf.eye(2) * called))

    program = program_of(with_extra(extra))
    found = unsupported(program)
    assert [op.op for op in found] == ["AsString", "StringToNumber", "PyFunc", "MatrixSquareRoot"]
    assert {op.reason for op in found} == {"has no XLA kernel"}
    lines = {program.recorded.graph.get_operation_by_name(op.node).type for op in found}
    assert lines == {op.op for op in found}


def test_a_dtype_without_a_kernel_is_named():
    def extra(x):
        return tf.reduce_sum(tf.cast(tf.equal(tf.fill([2], "a"), "b"), tf.float32))

    found = unsupported(program_of(with_extra(extra)))
    reason = "has no XLA kernel for string"
    assert [(op.op, op.reason) for op in found] == [("Fill", reason), ("Equal", reason)]


def test_ops_in_branches_and_loops_are_found_at_the_node_that_runs_them():
    def extra(x):
        def branch():
            return tf.strings.to_number(tf.strings.as_string(tf.reduce_sum(x)))

        return tf.cond(tf.reduce_sum(x) > 0, branch, lambda: 0.0)

    program = program_of(with_extra(extra))
    found = unsupported(program)
    assert [op.op for op in found] == ["AsString", "StringToNumber"]
    assert all(op.inside for op in found)
    assert {program.recorded[op.node].op for op in found} <= {"If", "StatelessIf"}


def test_what_only_a_tpu_has_a_kernel_for_is_no_finding():
    program = program_of(dense_net)
    assert "CrossReplicaSum" in {program.recorded[name].op for name in program.nodes}


def test_what_no_step_needs_is_no_finding():
    def extra(x):
        tf1.summary.scalar("mean", tf.reduce_mean(x))
        return 0.0

    assert unsupported(program_of(with_extra(extra))) == []
