"""The loop of a training that runs in a Session, with TensorFlow's hooks: nothing is replayed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
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
