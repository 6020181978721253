"""Each setting of a RunConfig, as training shows it."""

from __future__ import annotations

import glob
import json
import os
import time

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, host_estimator, numbers

tf1 = tf.compat.v1


def saved_steps(model_dir):
    paths = tf.train.get_checkpoint_state(model_dir).all_model_checkpoint_paths
    return [int(path.rpartition("-")[2]) for path in paths]


def test_checkpoints_come_by_seconds(model_dir):
    def slow(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        wait = tf1.py_func(lambda: time.sleep(0.3), [], [])
        return spec._replace(train_op=tf.group(spec.train_op, wait))

    host_estimator(model_dir, slow, save_checkpoints_secs=1).train(numbers(9), steps=8)
    first, *between, last = saved_steps(model_dir)
    assert (first, last) == (0, 8)
    assert between


def test_one_checkpoint_in_so_many_hours_is_kept_for_good(model_dir):
    model = host_estimator(
        model_dir,
        save_checkpoints_steps=2,
        keep_checkpoint_max=1,
        keep_checkpoint_every_n_hours=1e-9,
    )
    model.train(numbers(9), steps=8)
    assert len(glob.glob(os.path.join(model_dir, "model.ckpt-*.index"))) == 5


@pytest.mark.parametrize("save", [True, False])
def test_graphs_are_saved_beside_checkpoints_or_not(model_dir, save):
    host_estimator(model_dir, checkpoint_save_graph_def=save).train(numbers(2), steps=1)
    assert os.path.exists(os.path.join(model_dir, "graph.pbtxt")) == save
    assert os.path.exists(os.path.join(model_dir, "model.ckpt-1.meta")) == save


def test_no_summaries_and_no_checkpoints_on_request(model_dir):
    model = host_estimator(
        model_dir,
        save_summary_steps=None,
        save_checkpoints_secs=None,
        log_step_count_steps=None,
    )
    model.train(numbers(3), steps=2)
    assert not tf.io.gfile.exists(model_dir) or os.listdir(model_dir) == []


def test_device_fn_is_asked_about_each_op_of_the_model(model_dir):
    seen = {}

    def device_fn(op):
        seen[op.name] = op.type
        return "/device:CPU:0"

    devices = []

    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        devices.append(spec.loss.device)
        return spec

    host_estimator(model_dir, model_fn, device_fn=device_fn).train(numbers(2), steps=1)
    assert seen["weight"] == "VarHandleOp"
    assert devices == ["/device:CPU:0"]


def test_protocol_is_that_of_the_server_of_a_ps(model_dir, monkeypatch):
    started = []

    class Server:
        def __init__(self, cluster, protocol=None, **kwargs):
            started.append(protocol)

        def start(self):
            pass

        def join(self):
            pass

    cluster = {"chief": ["localhost:1"], "ps": ["localhost:2"]}
    task = {"type": "ps", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    monkeypatch.setattr(tf.distribute, "Server", Server)
    estimator.train_and_evaluate(
        host_estimator(model_dir, protocol="grpc"),
        estimator.TrainSpec(numbers(1), max_steps=1),
        estimator.EvalSpec(numbers(1)),
    )
    assert started == ["grpc"]


def test_seed_gives_the_weights_of_the_real_estimator(model_dir):
    def model_fn(features, mode):
        shape = [2, 2]
        by_graph_seed = tf1.get_variable("by_graph_seed", shape)
        by_own_seed = tf1.get_variable(
            "by_own_seed", shape, initializer=tf1.truncated_normal_initializer(seed=5)
        )
        loss = tf.reduce_sum(by_graph_seed + by_own_seed) * tf.reduce_mean(features)
        train_op = tf1.train.get_global_step().assign_add(1)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    config = estimator.RunConfig(model_dir=model_dir, tf_random_seed=7)
    model = estimator.Estimator(model_fn, config=config)
    model.train(numbers(2), steps=1)
    # What the Estimator of TF 2.15.1 gave.
    np.testing.assert_allclose(
        model.get_variable_value("by_graph_seed"),
        [[0.6215053796768188, -1.0338375568389893], [-0.10089659690856934, 0.8740440607070923]],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        model.get_variable_value("by_own_seed"),
        [[0.007278046105057001, 0.5343581438064575], [0.18353332579135895, -0.3664293885231018]],
        rtol=1e-6,
    )


def test_another_seed_gives_other_weights(model_dir):
    def model_fn(features, mode):
        weight = tf1.get_variable("weight", [4])
        loss = tf.reduce_sum(weight) * tf.reduce_mean(features)
        train_op = tf1.train.get_global_step().assign_add(1)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def weights(seed, folder):
        config = estimator.RunConfig(model_dir=f"{model_dir}{folder}", tf_random_seed=seed)
        model = estimator.Estimator(model_fn, config=config)
        model.train(numbers(2), steps=1)
        return model.get_variable_value("weight").tolist()

    assert weights(1, "a") == weights(1, "b")
    assert weights(1, "c") != weights(2, "d")
    assert weights(None, "e") != weights(None, "f")
