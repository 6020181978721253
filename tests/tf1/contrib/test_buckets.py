"""`tf.contrib.training` fills buckets and samples from threads, as TF 1.15 did."""

from __future__ import annotations

import json

import bucketed
import numpy as np
import pytest
import tensorflow

import estimator2strategy.tf1 as tf
from estimator2strategy import estimator
from estimator2strategy.engine import behavior

GOLDEN = json.loads(bucketed.GOLDEN.read_text())


@pytest.mark.oldest
@pytest.mark.parametrize("name", bucketed.cases())
def test_batches_shapes_and_summaries_are_those_of_tf_1_15(name):
    assert bucketed.made(tf, name) == GOLDEN[name]


def test_the_messages_about_wrong_arguments_are_those_of_tf_1_15():
    assert bucketed.refused(tf) == GOLDEN["refused"]


def _by_length():
    (number,) = tf.train.slice_input_producer([np.arange(12)], 1, shuffle=False)
    length = tf.cast(number % 4, tf.int32)
    return tf.contrib.training.bucket_by_sequence_length(
        length, {"x": tf.range(length), "n": number}, 3, [2], dynamic_pad=True
    )


def _numbers(session, taken):
    found = []
    while not session.should_stop():
        found += session.run(taken)[1]["n"].tolist()
    return sorted(found)


def test_a_monitored_session_fills_the_buckets():
    with tf.Graph().as_default():
        taken = _by_length()
        with tf.train.MonitoredSession() as session:
            assert _numbers(session, taken) == list(range(12))


def test_a_supervisor_fills_the_buckets(tmp_path):
    with tf.Graph().as_default():
        lengths, _ = _by_length()
        supervisor = tf.train.Supervisor(logdir=str(tmp_path), saver=None)
        with supervisor.managed_session() as session:
            assert session.run(lengths).shape == (3,)


def test_sparse_tensors_are_kept_or_not_in_functional_control_flow():
    graph = tensorflow.Graph()
    behavior.mark(graph, behavior.Behavior(control_flow_v2=True))
    made = bucketed.made(tf, "sparse_kept_by_number", graph)
    assert made["batches"] == GOLDEN["sparse_kept_by_number"]["batches"]


def test_shares_of_classes_are_counted_where_the_program_has_none():
    """Not a golden: what counts reads examples of its own, so which are left depends on threads."""
    with tf.Graph().as_default():
        (number,) = tf.train.slice_input_producer([np.arange(9)], shuffle=False)
        (batch,), labels = tf.contrib.training.stratified_sample(
            [number], number % 3, [0.0, 0.0, 1.0], 4
        )
        (counts,) = tf.global_variables()
        assert (counts.op.name, counts.dtype.base_dtype) == (
            "stratified_sample/class_count",
            "int64",
        )
        with tf.train.MonitoredSession() as session:
            found = session.run([batch, labels])
            assert session.run(counts).min() > 10
    assert found[0].tolist() == [n for n in found[0] if n % 3 == 2]
    assert found[1].tolist() == [2] * 4


def test_shares_that_do_not_add_up_to_1_are_refused_when_they_are_used():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(1)
        tf.contrib.training.stratified_sample([x], x, [0.5, 0.4], 3, [0.5, 0.5])
        runner = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[-1]
        feeder = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[0]
        session.run(feeder.enqueue_ops[0])
        with pytest.raises(tf.errors.InvalidArgumentError, match="x < y"):
            session.run(runner.enqueue_ops[0])


@pytest.mark.oldest
def test_an_estimator_trains_on_buckets(tmp_path):
    def input_fn():
        lengths, features = _by_length()
        return features, lengths

    def model_fn(features, labels, mode):
        weight = tf.get_variable("weight", initializer=0.0)
        loss = tf.reduce_mean(tf.square(weight - tf.cast(features["x"], tf.float32)))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(
            loss + 0.0 * tf.cast(labels[0], tf.float32), tf.train.get_global_step()
        )
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    model = estimator.Estimator(model_fn, model_dir=str(tmp_path))
    model.train(input_fn)
    assert model.get_variable_value("global_step") == 4
