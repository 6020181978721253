"""XLA's programs of recorded steps."""

from __future__ import annotations

import re
import resource

import pytest
import tensorflow as tf
from legacy_models import FEATURES, dense_net, program_of, recorded, with_extra

from estimator2strategy.engine.replay.xla.lowering import (
    LoweringError,
    compile_for_cpu,
    lower,
    recorded_node,
)
from estimator2strategy.engine.xla import hlo
from estimator2strategy.engine.xla.core_program import core_program

pytestmark = pytest.mark.oldest
tf1 = tf.compat.v1


def opcodes(module: bytes) -> list[str]:
    return [opcode for _, opcode, _ in hlo.instructions(module)]


def test_a_train_step_of_eight_cores_meets_in_its_sums():
    module = lower(program_of(dense_net))
    sums = [i for _, opcode, i in hlo.instructions(module) if opcode == "all-reduce"]
    assert len(sums) == 1  # of one gradient
    # TensorFlow 2.16 has no field of that name yet.
    devices = getattr(sums[0], "collective_device_list", sums[0])
    assert [list(g.replica_ids) for g in devices.replica_groups] == [list(range(8))]


def test_a_sum_in_a_branch_meets_there():
    def model_fn(features, labels, mode, params):
        spec = dense_net(features, labels, mode, params)
        weights = tf1.trainable_variables()[0]
        even = tf.equal(tf1.train.get_global_step() % 2, 0)
        summed = tf.cond(
            even, lambda: tf1.tpu.cross_replica_sum(weights.read_value()), lambda: weights * 1.0
        )
        with tf.control_dependencies([spec.train_op]):
            train_op = tf.group(weights.assign(summed))
        return spec._replace(train_op=train_op)

    assert opcodes(lower(program_of(model_fn))).count("all-reduce") == 2


def test_one_core_meets_nobody():
    assert "all-reduce" not in opcodes(lower(program_of(dense_net, cores=1)))


@pytest.mark.parametrize("mode", ["train", "eval", "predict"])
def test_every_mode_compiles_for_the_cpu(mode):
    assert compile_for_cpu(program_of(dense_net, mode)) > 0


def test_ops_are_found_again_in_the_program():
    program = program_of(dense_net)
    names = {name for name, _, _ in hlo.instructions(lower(program)) if name.endswith("MatMul")}
    assert names
    for name in names:
        assert program.recorded[recorded_node(program, name)].op == "MatMul"
    assert recorded_node(program, "step/no/such/op") == ""


def test_what_xla_refuses_says_which_op():
    def extra(x):
        return tf.reduce_sum(tf.linalg.sqrtm(tf.eye(2) * tf.reduce_sum(x)))

    program = program_of(with_extra(extra))
    with pytest.raises(LoweringError, match="MatrixSquareRoot") as refused:
        lower(program)
    assert [program.recorded[n].op for n in refused.value.nodes] == ["MatrixSquareRoot"]


def test_a_loop_without_a_bound_has_no_gradient():
    def extra(x):
        weights = tf1.get_variable("looped", [])
        return tf.while_loop(
            lambda i, _: i < tf.cast(tf.reduce_sum(x), tf.int32) + 3,
            lambda i, total: (i + 1, total * weights),
            [0, tf.reduce_sum(x)],
        )[1]

    with pytest.raises(LoweringError, match="fixed tensor list size"):
        lower(program_of(with_extra(extra)))


def test_variables_take_no_memory():
    gibibytes, size = 4, 1 << 14  # a square of floats of that size is 1 GiB

    def model_fn(features, labels, mode, params):
        outputs = tf.tile(features, [1, size // FEATURES])
        for i in range(gibibytes):
            zeros = tf1.zeros_initializer()
            outputs = tf.matmul(outputs, tf1.get_variable(f"huge_{i}", [size, size], None, zeros))
        loss = tf.reduce_mean(outputs)
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(1e-3))
        train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
        return dense_net(features, labels, mode, params)._replace(loss=loss, train_op=train_op)

    program = program_of(model_fn)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lower(program)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


def test_the_fingerprint_is_that_of_the_computation():
    def named(name):
        def model_fn(features, labels, mode, params):
            with tf1.name_scope(name):
                return dense_net(features, labels, mode, params)

        return model_fn

    modules = [lower(program_of(named(name))) for name in ("a", "b")]
    assert modules[0] != modules[1]
    assert hlo.fingerprint(modules[0]) == hlo.fingerprint(modules[1])
    other = lower(program_of(with_extra(lambda x: tf.reduce_sum(x))))
    assert hlo.fingerprint(other) != hlo.fingerprint(modules[0])
    assert len({hlo.fingerprint(lower(program_of(dense_net, batch=b))) for b in (64, 128)}) == 2


def test_the_recording_can_be_lowered_again():
    recording = recorded(dense_net)
    modules = {hlo.fingerprint(lower(core_program(recording))) for _ in range(2)}
    assert len(modules) == 1


def test_no_line_of_a_user_is_in_the_message_twice():
    with pytest.raises(LoweringError) as refused:
        lower(
            program_of(
                with_extra(lambda x: tf.reduce_sum(tf.linalg.sqrtm(tf.eye(2) * tf.reduce_sum(x))))
            )
        )
    assert len(re.findall("MatrixSquareRoot", " ".join(refused.value.nodes))) == 1
