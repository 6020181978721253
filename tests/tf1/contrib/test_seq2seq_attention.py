"""Mechanisms of programs derive from those of `tf.contrib.seq2seq`, and call what these hold."""

from __future__ import annotations

import numpy as np
import pytest

import estimator2strategy.tf1 as tf

seq2seq = tf.contrib.seq2seq


class ThroughTheState(seq2seq.BahdanauAttention):
    """Scores of the program's own, as in the public Tacotrons: the state is given on."""

    def __call__(self, query, state):
        score = tf.reduce_sum(self.keys * self.query_layer(query)[:, None], 2)
        return self._probability_fn(score, state), state


@pytest.mark.parametrize("lengths", [None, [2, 3]])
def test_a_mechanism_of_a_program_gives_score_and_state_to_the_probability_fn(lengths):
    with tf.Graph().as_default(), tf.Session() as session:
        mechanism = ThroughTheState(4, tf.ones([2, 3, 5]), lengths)
        alignments, _ = mechanism(tf.ones([2, 6]), mechanism.initial_state(2, tf.float32))
        session.run(tf.global_variables_initializer())
        found = session.run(alignments)
    third = [1 / 3] * 3
    expected = [third, third] if lengths is None else [[0.5, 0.5, 0.0], third]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [seq2seq.BahdanauAttention, seq2seq.LuongAttention])
def test_a_program_may_set_the_probability_fn_itself(kind):
    with tf.Graph().as_default():
        mechanism = kind(4, tf.ones([2, 3, 5]))
        mechanism._probability_fn = lambda score, state: (score, state)
        (score, given), after = mechanism(tf.ones([2, 4]), "state")
    assert (score.shape.as_list(), given, after) == ([2, 3], "state", (score, "state"))
