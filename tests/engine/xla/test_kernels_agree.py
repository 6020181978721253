"""What the registry of kernels says of an op is what XLA says when it compiles."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from legacy_models import program_of, with_extra

from estimator2strategy.engine.replay.xla.lowering import LoweringError, lower
from estimator2strategy.engine.xla.core_program import unsupported

tf1 = tf.compat.v1


def total(tensor):
    return tf.reduce_sum(tf.cast(tensor, tf.float32))


def in_a_loop(x):
    arrays = tf.TensorArray(tf.float32, 3)
    return tf.while_loop(
        lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, total(x))), [0, arrays]
    )[1].stack()


def asserted(x):
    with tf.control_dependencies([tf1.Assert(tf.reduce_all(x >= 0), ["negative:", x])]):
        return tf.identity(x)


def bounded_gradient(x):
    weight = tf1.get_variable("looped", [])
    return tf.while_loop(
        lambda i, _: i < 3,
        lambda i, t: (i + 1, t * weight),
        [0, total(x)],
        maximum_iterations=3,
    )[1]


COMPILES = {
    "where": lambda x: tf.where(x > 0),
    "boolean mask": lambda x: tf.boolean_mask(x, x > 0),
    "unique": lambda x: tf.unique(tf.reshape(x, [-1]))[0],
    "suppression": lambda x: tf.image.non_max_suppression(tf.reshape(x, [-1, 4]), x[:, 0], 3),
    "sparse to dense": lambda x: tf.sparse.to_dense(tf.sparse.from_dense(x)),
    "int64": lambda x: tf.cast(x, tf.int64) + 1,
    "float64": lambda x: tf.cast(x, tf.float64) * 2.0,
    "uniform": lambda x: tf.random.uniform([3]),
    "normal": lambda x: tf.random.normal([3]),
    "truncated": lambda x: tf.random.truncated_normal([3]),
    "shuffle": tf.random.shuffle,
    "categorical": lambda x: tf.random.categorical(x, 2),
    "stateless": lambda x: tf.random.stateless_normal([3], [1, 2]),
    "top k": lambda x: tf.math.top_k(x, 2)[0],
    "unsorted segments": lambda x: tf.math.unsorted_segment_sum(x, tf.range(8) % 2, 2),
    "loop with an array": in_a_loop,
    "branch": lambda x: tf.cond(total(x) > 0, lambda: x, lambda: 2.0 * x),
    "assertion": asserted,
    "gradient of a bounded loop": bounded_gradient,
    "convolution": lambda x: tf.nn.conv2d(x[:, :, None, None], tf.ones([2, 1, 1, 1]), 1, "SAME"),
}
REFUSED = {
    "string": lambda x: tf.strings.length(tf.strings.as_string(x)),
    "Python": lambda x: tf.numpy_function(lambda v: np.float32(v), [x[0, 0]], tf.float32),
    "matrix root": lambda x: tf.linalg.sqrtm(tf.matmul(x, x, transpose_a=True)),
    "sorted segments": lambda x: tf.math.segment_sum(x, tf.range(8)),
    "gamma": lambda x: tf.random.gamma([3], 1.0),
    "Poisson": lambda x: tf.random.poisson([3], 1.0),
    "print": lambda x: tf1.Print(x, [x]),
}


@pytest.mark.parametrize("extra", COMPILES.values(), ids=COMPILES)
def test_what_has_kernels_is_lowered(extra):
    program = program_of(with_extra(lambda x: total(extra(x))))
    assert unsupported(program) == []
    assert lower(program)


@pytest.mark.parametrize("extra", REFUSED.values(), ids=REFUSED)
def test_what_has_none_is_refused(extra):
    program = program_of(with_extra(lambda x: total(extra(x))))
    ops = {op.op for op in unsupported(program)}
    assert ops
    with pytest.raises(LoweringError) as refused:
        lower(program)
    assert any(op in refused.value.text for op in ops)
