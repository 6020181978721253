"""The graph and the loop of a training that runs in a Session: nothing is replayed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.runtime.empty_input import warn_of_no_steps
from estimator2strategy.engine.runtime.interruption import Interruption
from estimator2strategy.engine.runtime.training import (
    Hook,
    add_default_saver,
    summarize_loss,
    training_hooks,
)
from estimator2strategy.engine.worlds import for_session

tf1 = tf.compat.v1


def train_in_session(
    recording: Recording,
    config: Any,
    hooks: Sequence[Hook],
    saving_listeners: Sequence[tf1.train.CheckpointSaverListener],
    creator_of: Callable[[tf1.train.Scaffold], tf1.train.SessionCreator],
    stop_grace_secs: float = 120,
) -> Any:
    """Runs the recorded training in a Session until a hook stops it or the input ends.

    Must be called with `recording.graph` as the default graph.

    Args:
        creator_of: Returns what makes the session, called when the graph has its saver.
        stop_grace_secs: Time for threads of queues to end, before the session is closed on them.

    Returns:
        The loss of the last step (numpy), None when no step ran.

    Source: `Estimator._train_with_estimator_spec`, tensorflow_estimator 2.15.
    """
    spec = recording.spec
    summarize_loss(spec.loss)
    add_default_saver(config, spec.scaffold, shards=None)
    savers, all_hooks = training_hooks(recording, config, hooks, saving_listeners, beside=False)
    creator = creator_of(spec.scaffold)
    loss = None
    with Interruption() as interruption, contextlib.ExitStack() as afterwards:
        for saver in savers:
            afterwards.callback(saver.wait)
        with tf1.train.MonitoredSession(creator, all_hooks, stop_grace_secs) as monitored:
            while not monitored.should_stop() and not interruption.requested:
                _, loss = monitored.run([spec.train_op, spec.loss])
        interruption.explain(config.model_dir)
    if loss is None:
        warn_of_no_steps()
    return loss


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
