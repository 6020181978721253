"""Where a step is cut in two (`plan.pipeline_cut`)."""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.pipeline_cut import pipeline_cut
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1


def cut(build):
    """Halves of the step of `build(batch, total)`, which returns (fetched tensors, ops)."""
    with legacy_world(), recording(None) as graph:
        batch = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(4)).get_next()
        total = tf1.get_variable("total", [], tf.int64, tf1.zeros_initializer())
        tensors, ops = build(batch, total)
    names = [tensor.name for tensor in tensors], [op.name for op in ops]
    return pipeline_cut(RecordedGraph(graph), *names, taker=batch.op.name)


def test_what_is_computed_of_the_batch_alone_is_the_first_half():
    found = cut(lambda batch, total: ([], [total.assign_add(tf.square(batch, "squared")).op]))
    assert found.handed_on == ("squared:0",)


def test_what_reads_a_variable_that_the_step_writes_is_in_the_second_half():
    def build(batch, total):
        doubled = tf.multiply(batch, 2, name="doubled")
        share = tf.add(doubled, total.read_value(), name="share")
        return [share], [total.assign(doubled).op]

    assert cut(build).handed_on == ("doubled:0",)


def test_what_reads_a_variable_that_nothing_writes_may_be_in_the_first_half():
    def build(batch, total):
        weight = tf1.get_variable("weight", [], tf.int64, tf1.ones_initializer())
        return [], [total.assign_add(tf.multiply(batch, weight, name="weighed")).op]

    assert cut(build).handed_on == ("weighed:0",)


def test_random_numbers_are_drawn_in_the_second_half():
    def build(batch, total):
        squared = tf.square(batch, name="squared")
        noise = tf1.random_uniform([], maxval=9, dtype=tf.int64)
        return [], [total.assign_add(squared + noise).op]

    assert cut(build).handed_on == ("squared:0",)


def test_a_check_of_the_first_half_is_waited_for():
    def build(batch, total):
        check = tf1.assert_less(batch, tf.constant(9, tf.int64), name="check")
        with tf.control_dependencies([check]):
            return [], [total.assign_add(batch).op]

    found = cut(build)
    assert [name.split("/")[0] for name in found.waited_for] == ["check"]


def test_a_step_that_computes_nothing_of_its_batch_alone_has_no_halves():
    assert cut(lambda batch, total: ([], [total.assign_add(batch).op])) is None


def test_a_loop_of_tf1_is_not_cut():
    def build(batch, total):
        tf1.disable_control_flow_v2()
        try:
            looped = tf1.while_loop(lambda x: x < 100, lambda x: x * 2 + 1, [batch])
        finally:
            tf1.enable_control_flow_v2()
        return [], [total.assign_add(looped).op]

    assert cut(build) is None
