"""`MultiWorkerMirroredStrategy` of TF 1.15, in processes of a cluster that train nothing."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

import estimator2strategy.tf1 as legacy

CLUSTER = {"chief": ["host0:1"], "worker": ["host1:1"]}


@pytest.mark.parametrize(
    ("job", "more"),
    [("evaluator", {}), ("evaluator", {"evaluator": ["host2:1"]}), ("ps", {"ps": ["host2:1"]})],
)
@pytest.mark.parametrize(
    "strategy",
    [
        legacy.distribute.experimental.MultiWorkerMirroredStrategy,
        legacy.compat.v2.distribute.experimental.MultiWorkerMirroredStrategy,
        legacy.contrib.distribute.CollectiveAllReduceStrategy,
    ],
)
def test_it_waits_for_nobody(monkeypatch, job, more, strategy):
    config = {"cluster": {**CLUSTER, **more}, "task": {"type": job, "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with tf.Graph().as_default():
        made = strategy()
    assert made.num_replicas_in_sync == 1
    assert isinstance(made, strategy)


def test_contrib_s_number_of_gpus_is_what_the_process_sees(monkeypatch, log):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    legacy.contrib.distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=0)
    assert "GPU" not in log.text
    legacy.contrib.distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=2)
    assert "num_gpus_per_worker=2) takes the 0 GPU(s) that this process sees" in log.text
