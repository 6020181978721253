"""A seeded random op draws under XLA what the kernel for CPUs draws, to the last bit if it can."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay import xla_draws
from estimator2strategy.engine.replay.draw_functions import draw_function
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.random_streams import RandomStreams
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.worlds import modern_world

tf1 = tf.compat.v1
FLOATS = [tf.float16, tf.bfloat16, tf.float32, tf.float64]
# No multiples of 4; no shape, no elements; more than 256; places beyond 32 bits within the last.
SHAPES = [(), (0,), (3, 7), (5001,)]
PLACES = [0, 2816, 2**32 - 3, 2**40 + 256]
# Of a normal number: the C library's functions are not rounded correctly.
RELATIVE = {tf.float16: 1e-3, tf.bfloat16: 8e-3, tf.float32: 2.5e-7, tf.float64: 1e-15}


def drawn(draw, places=PLACES):
    """The results of `draw(key, counter)` under XLA, place after place."""

    @tf.function(autograph=False, jit_compile=True)
    def compiled(counter):
        return draw(tf.constant([2**40 + 3], tf.uint64), counter)

    return [compiled(tf.constant([place, 7], tf.uint64)) for place in places]


def of_kernel(op, shape, places=PLACES, **kwargs):
    """The result of the stateless op; a test says that it draws as a Session does."""
    key = tf.constant([2**40 + 3], tf.uint64)
    counters = [tf.constant([place, 7], tf.uint64) for place in places]
    op = getattr(tf.raw_ops, op)
    return [op(shape=shape, key=key, counter=c, alg=1, **kwargs) for c in counters]


def compare(draw, op, equal, **kwargs):
    found = drawn(lambda key, counter: [draw(shape, key, counter) for shape in SHAPES])
    for number, shape in enumerate(SHAPES):
        expected = of_kernel(op, list(shape), **kwargs)
        for values, at_place in zip(expected, found, strict=True):
            assert at_place[number].shape == shape
            assert at_place[number].dtype == values.dtype
            equal(at_place[number].numpy(), values.numpy())


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_uniform_numbers_are_equal(dtype):
    def draw(shape, key, counter):
        return xla_draws.uniform(shape, key, counter, dtype)

    compare(draw, "StatelessRandomUniformV2", np.testing.assert_array_equal, dtype=dtype)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("bounds", [(-3, 99), (None, None)], ids=["few", "all"])
def test_integers_are_equal(dtype, bounds):
    low, high = bounds if bounds[1] else (dtype.min, dtype.max)
    low, high = tf.constant(low, dtype), tf.constant(high, dtype)

    def draw(shape, key, counter):
        return xla_draws.uniform_int(shape, low, high, key, counter)

    same = np.testing.assert_array_equal
    compare(draw, "StatelessRandomUniformIntV2", same, minval=low, maxval=high)


@pytest.mark.parametrize("op", ["normal", "truncated_normal"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_normal_numbers_are_equal_but_for_the_last_digits(op, dtype):
    def draw(shape, key, counter):
        return getattr(xla_draws, op)(shape, key, counter, dtype)

    def close(found, expected):
        found, expected = found.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_allclose(found, expected, rtol=RELATIVE[dtype], atol=0)
        assert np.sum(found != expected) <= max(3, 0.02 * found.size)

    kernel = {"normal": "StatelessRandomNormalV2", "truncated_normal": "StatelessTruncatedNormalV2"}
    compare(draw, kernel[op], close, dtype=dtype)


LOGITS = np.log([[0.1, 0.2, 0.7], [0.5, 0.0001, 0.4999]]).astype(np.float32)
LOGITS[1, 1] = -np.inf
HALVES = LOGITS.astype(np.float16)
OPS = {
    "uniform": lambda: tf1.random_uniform([3, 7], seed=5),
    "integers": lambda: tf1.random_uniform([3], -3, 99, tf.int64, seed=5),
    "normal": lambda: tf1.random_normal([5], dtype=tf.float64, seed=5),
    "truncated normal": lambda: tf1.truncated_normal([3, 7], dtype=tf.float64, seed=5),
    "shuffled vector": lambda: tf1.random_shuffle(tf.range(1.0, 302.0), seed=5),
    "shuffled matrix": lambda: tf1.random_shuffle(tf.reshape(tf.range(30), [10, 3]), seed=5),
    "shuffled row": lambda: tf1.random_shuffle(tf.ones([1, 3]), seed=5),
    "shuffled nothing": lambda: tf1.random_shuffle(tf.zeros([0, 3]), seed=5),
    "classes": lambda: tf1.multinomial(LOGITS, 5, seed=5),
    "int32 classes": lambda: tf1.multinomial(
        LOGITS.astype(np.float16), 8, 5, output_dtype=tf.int32
    ),
    "no classes": lambda: tf1.multinomial(LOGITS, 0, seed=5),
}


def runs(graph, fetches, steps, feeds=None):
    """The results of `steps` runs of a compiled function with streams of its own."""
    recorded = RecordedGraph(graph)
    state, streams = State(recorded), RandomStreams("/CPU:0")
    with modern_world():

        @tf.function(autograph=False, jit_compile=True)
        def step():
            given = {tensor.name: tf.constant(value) for tensor, value in (feeds or {}).items()}
            importer = GraphImporter(
                recorded, state.handle, given, streams=streams, draw=draw_function
            )
            return importer.fetch([tensor.name for tensor in fetches])

        values = [[value.numpy() for value in step()] for _ in range(steps)]
    return values, streams


def compare_with_session(graph, fetches, feeds=None):
    with tf1.Session(graph=graph) as real:
        expected = [real.run(fetches, feeds) for _ in range(3)]
    found, streams = runs(graph, fetches, 3, feeds)
    for step, values in zip(expected, found, strict=True):
        for wanted, value, fetch in zip(step, values, fetches, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-15, err_msg=fetch.name)
    return streams.places()


def test_compiled_steps_draw_what_a_session_draws():
    with tf.Graph().as_default() as graph:
        fetches = [draw() for draw in OPS.values()]
    compare_with_session(graph, fetches)


def test_sizes_may_be_those_of_the_batch():
    with tf.Graph().as_default() as graph:
        batch = tf1.placeholder(tf.float32, [None, 7])
        shape = tf.shape(batch)
        fetches = [
            tf1.random_uniform(shape, seed=1),
            tf1.truncated_normal(shape, dtype=tf.float64, seed=2),
            tf1.random_shuffle(batch, seed=3),
            tf1.multinomial(batch, 5, seed=4),
        ]
    batch_of_6 = np.arange(42, dtype=np.float32).reshape(6, 7) / 42
    places = compare_with_session(graph, fetches, {batch: batch_of_6})
    assert [*places.values()] == [3 * 42 * 256, 3 * 42 * 256, 3 * 2, 3 * 6 * 8 * 2 * 256]
