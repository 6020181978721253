"""Stateless random ops of a program draw under XLA what kernels for CPUs draw, in bodies too."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import ALONE_IN_XLA
from estimator2strategy.engine.replay.draw_functions import draw_function, drawing
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.random_streams import RandomStreams
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.worlds import legacy_world, modern_world

tf1 = tf.compat.v1
SEED = [-3, 2**40 + 5]
LOGITS = np.linspace(-2, 2, 45, dtype=np.float32).reshape(5, 9)

# Draws [5, 7] numbers with the seed that it is given.
DRAWS = {
    "uniform": lambda seed: tf.random.stateless_uniform([5, 7], seed),
    "uniform of int32": lambda seed: tf.random.stateless_uniform([5, 7], tf.cast(seed, tf.int32)),
    "uniform of old": lambda seed: tf.raw_ops.StatelessRandomUniform(shape=[5, 7], seed=seed),
    "integers": lambda seed: tf.random.stateless_uniform([5, 7], seed, -3, 99, tf.int64),
    "integers of old": lambda seed: tf.raw_ops.StatelessRandomUniformInt(
        shape=[5, 7], seed=seed, minval=-3, maxval=99
    ),
    "normal": lambda seed: tf.random.stateless_normal([5, 7], seed, 2.0, 0.5),
    "normal of old": lambda seed: tf.raw_ops.StatelessRandomNormal(shape=[5, 7], seed=seed),
    "truncated": lambda seed: tf.random.stateless_truncated_normal([5, 7], seed),
    "classes": lambda seed: tf.random.stateless_categorical(LOGITS, 7, seed, tf.int32),
    "dropout": lambda seed: tf.nn.experimental.stateless_dropout(tf.ones([5, 7]), 0.4, seed),
}


def in_a_loop(draw):
    def body(i, total):
        return i + 1, total + tf.cast(draw(tf.stack([i, 7])), tf.float32)

    start = (tf.constant(0, tf.int64), tf.zeros([5, 7]))
    return tf.while_loop(lambda i, _: i < 3, body, start)[1]


def in_a_branch(draw):
    def drawn():
        return tf.cast(draw(tf.constant(SEED, tf.int64)), tf.float32)

    taken = tf1.placeholder_with_default(True, [])
    return tf.cond(taken, drawn, lambda: tf.zeros([5, 7]))


PLACES = {
    "graph": lambda draw: draw(tf.constant(SEED, tf.int64)),
    "loop": in_a_loop,
    "branch": in_a_branch,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_those_of_a_session(name, place):
    with legacy_world(), tf.Graph().as_default() as graph:
        made = PLACES[place](DRAWS[name])
        with tf1.Session() as real:
            expected = real.run(made)
    recorded = RecordedGraph(graph)
    state, streams = State(recorded), RandomStreams("/CPU:0")
    with modern_world():

        @tf.function(autograph=False, jit_compile=True)
        def step():
            rewrite = drawing(ALONE_IN_XLA)
            importer = GraphImporter(
                recorded, state.handle, rewrite=rewrite, streams=streams, draw=draw_function
            )
            return importer.fetch([made.name])[0]

        found = step().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
