"""The graph that a worker of a cluster with parameter servers trains, and where its ops are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.worlds import for_session

tf1 = tf.compat.v1


@contextlib.contextmanager
def session_graph(config: Any, tf115: bool) -> Iterator[tf.Graph]:
    """A fresh graph for the training of one worker, as the default graph.

    Args:
        config: A RunConfig of a task of the cluster.
        tf115: True if the program is one of TF 1.15: its variables are reference variables.
    """
    with for_session(config.tf_random_seed, tf115) as graph, graph.device(device_fn(config)):
        yield graph


def device_fn(config: Any) -> Callable[[tf.Operation], Any]:
    """The device of an op: the program's choice, or variables on servers, the rest on this worker.

    Source: `_get_replica_device_setter`, tensorflow_estimator 2.15 estimator.py.
    """
    place: Callable[[Any], Any] = config.device_fn or tf1.train.replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device=f"/job:{config.task_type}/task:{config.task_id}",
        merge_devices=True,
        cluster=config.cluster_spec,
    )
    return place
