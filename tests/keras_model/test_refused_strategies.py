"""No TF2 loop runs a legacy model over parameter servers: that is said before a step is built."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import tensorflow as tf

import estimator2strategy as e2s
from estimator2strategy.errors import UnsupportedError
from tests import addresses, fresh

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
    raise AssertionError("called")


def input_fn():
    raise AssertionError("called")


@pytest.fixture
def strategy():
    cluster = tf.train.ClusterSpec({"ps": ["localhost:1"], "worker": ["localhost:2"]})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type="worker", task_id=0, rpc_layer="grpc"
    )
    return tf1.distribute.experimental.ParameterServerStrategy(resolver)


def test_adapt_names_the_ways_out(strategy):
    """In a scope only TensorFlow 2's can be, with its servers: see test_way_on.py."""
    with pytest.raises(UnsupportedError, match="is to run under a Param") as refused:
        e2s.adapt(model_fn, input_fn, strategy=strategy)
    for way in ("TF_CONFIG", "MirroredStrategy", "ClusterCoordinator", "servers.md"):
        assert way in str(refused.value)


TWO_PROCESSES = """
import tensorflow as tf
import estimator2strategy as e2s

with tf.distribute.MultiWorkerMirroredStrategy().scope():
    e2s.LegacyModel(lambda features, labels, mode: None)
"""


@pytest.mark.slow
def test_a_legacy_model_in_several_processes_names_the_ways_out():
    with addresses.held(2) as hosts:
        cluster = {"chief": hosts[:1], "worker": hosts[1:]}
        tasks = [{"type": job, "index": 0} for job in cluster]
        processes = [
            subprocess.Popen(
                [fresh.python(), "-c", TWO_PROCESSES],
                env={
                    **os.environ,
                    "TF_CONFIG": json.dumps({"cluster": cluster, "task": task}),
                    "PYTHONPATH": str(Path(__file__).parents[2]),
                },
                stderr=subprocess.PIPE,
                text=True,
            )
            for task in tasks
        ]
        outputs = [process.communicate(timeout=300) for process in processes]
    for _, said in outputs:
        assert "2 replicas, 1 of them in this process" in said
        assert "Train in several processes with Estimator" in said
