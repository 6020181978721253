"""Processes that train in step: what they must have in common, and who is there."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.runtime import agreement, liveness
from estimator2strategy.engine.runtime.liveness import (
    PeerWatch,
    answers,
    can_be_reached,
    peers_of,
)

tf1 = tf.compat.v1


def facts(rate=0.1, units=1, seed=0, start=0.0, shard=0, dropout=False):
    """Of a process that trains one layer."""
    with tf.Graph().as_default() as graph, tf1.variable_scope("", use_resource=True):
        tf1.set_random_seed(seed)
        data = tf.data.Dataset.range(8).shard(2, shard).batch(2)
        features = tf1.data.make_one_shot_iterator(data).get_next()
        features = tf.reshape(tf.cast(features, tf.float32), [-1, 1])
        kernel = tf1.get_variable("kernel", [1, units], initializer=tf1.constant_initializer(start))
        outputs = features @ kernel
        if dropout:
            outputs = tf1.nn.dropout(outputs, rate=0.5)
        loss = tf.reduce_mean(outputs)
        optimizer = tf1.train.GradientDescentOptimizer(rate)
        train_op = optimizer.minimize(loss, tf1.train.get_or_create_global_step())
        return agreement.facts_of(RecordedGraph(graph), [train_op.name])


def check(of_chief, of_other):
    import json
    import zlib

    texts = [zlib.compress(json.dumps(each).encode()) for each in (of_chief, of_other)]
    agreement.check(of_other, lambda text: [texts[0], text])


def test_processes_may_have_other_input_other_seeds_and_other_initial_values(log):
    check(facts(), facts(seed=7, start=3.0, shard=1))
    assert log() == []


def test_another_flag_is_named(log):
    check(facts(), facts(rate=0.05))
    assert "Process 1 does not train the chief's step" in log.text
    assert "only it has Const 'GradientDescent/learning_rate' = 0.05" in log.text
    assert "only the chief has Const 'GradientDescent/learning_rate' = 0.1" in log.text


def test_other_code_is_named(log):
    check(facts(), facts(dropout=True))
    assert "only it has Const 'dropout/Const' = 2.0" in log.text


def test_other_variables_are_refused():
    with pytest.raises(
        ValueError, match=r"process 1 has variable kernel: float32 \(1, 2\), the ch"
    ):
        check(facts(), facts(units=2))


CLUSTER = '{"cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"], "ps": ["d:4"], %s}'


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (CLUSTER % '"evaluator": ["e:5"]}, "task": {"type": "worker", "index": 1', "chief worker"),
        (CLUSTER % '"x": []}, "task": {"type": "evaluator", "index": 0', ""),
        (CLUSTER % '"x": []}, "task": {"type": "ps", "index": 0', ""),
        ("{nonsense", ""),
        (None, ""),
    ],
)
def test_peers_are_those_that_train(config, expected):
    found = peers_of(config + "}" if config and config != "{nonsense" else config)
    assert " ".join(name.split()[0] for name in found) == expected


def test_peers_of_a_cluster_whose_tasks_are_a_dict_are_at_their_addresses():
    cluster = {"chief": {"0": "a:1"}, "worker": {"1": "c:3", "0": "b:2"}}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    assert peers_of(json.dumps(config)) == {"chief 0": "a:1", "worker 1": "c:3"}


class Cluster:
    """Who is there, for a PeerWatch; what it says of who has gone."""

    def __init__(self):
        self.there, self.aborted, self.stopped = set(), [], set()
        peers = {"worker 0": "b:2", "worker 1": "c:3"}
        self.watch = PeerWatch(
            peers, self.there.__contains__, self.aborted.append, lambda at: at not in self.stopped
        )


def test_who_goes_in_the_middle_of_training_ends_the_wait():
    cluster = Cluster()
    cluster.there.update({"b:2", "c:3"})
    cluster.watch.look()
    cluster.watch.in_training = True
    cluster.there.remove("c:3")
    for _ in range(2):
        cluster.watch.look()
    assert cluster.aborted == [], "it may be back in a moment"
    cluster.watch.look()
    (message,) = cluster.aborted
    assert message.startswith("worker 1 (c:3) has ended in the middle of training.")


def test_who_goes_after_training_is_no_matter():
    cluster = Cluster()
    cluster.there.update({"b:2", "c:3"})
    cluster.watch.look()
    cluster.there.clear()
    for _ in range(9):
        cluster.watch.look()
    assert cluster.aborted == []


def test_who_has_ended_is_named_where_tensorflow_finds_it_out_first(monkeypatch):
    cluster = Cluster()
    cluster.there.add("b:2")
    monkeypatch.setattr(liveness, "watch", lambda: cluster.watch)
    named = pytest.raises(tf.errors.InternalError, match=r"^worker 1 \(c:3\) has ended")
    with named, liveness.needed():
        raise tf.errors.UnavailableError(None, None, "Connection reset by peer")


def test_who_says_nothing_in_the_middle_of_training_is_named_once(log):
    cluster = Cluster()
    cluster.there.update({"b:2", "c:3"})
    cluster.stopped.add("c:3")
    for _ in range(5):
        cluster.watch.look()
    assert log() == [], "training has not begun"
    cluster.watch.in_training = True
    for _ in range(9):
        cluster.watch.look()
    (message,) = log()
    assert message.startswith("worker 1 (c:3) is there, but has not answered")
    assert cluster.aborted == [], "it may go on"


def test_who_says_nothing_is_named_where_tensorflow_finds_it_out_first(monkeypatch):
    cluster = Cluster()
    cluster.there.add("c:3")
    cluster.stopped.add("c:3")  # and so worker 0 has ended
    monkeypatch.setattr(liveness, "watch", lambda: cluster.watch)
    named = pytest.raises(tf.errors.InternalError, match=r"^worker 1 \(c:3\) is there, but has not")
    with named, liveness.needed():
        raise tf.errors.UnavailableError(None, None, "Heartbeat timeout")


def test_a_server_of_tensorflow_answers_and_a_process_that_only_listens_does_not():
    import socket

    server = tf.distribute.Server.create_local_server()
    assert answers(server.target.removeprefix("grpc://"))
    with socket.create_server(("localhost", 0)) as silent:
        assert not answers(f"localhost:{silent.getsockname()[1]}")


def test_an_address_can_be_reached_while_somebody_listens():
    import socket

    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
        assert can_be_reached(address)
    assert not can_be_reached(address)
