"""The training of one worker: its session on the servers, and the facts that workers compare."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.parameter_servers import same_program
from estimator2strategy.engine.parameter_servers.same_program import check_python_ops
from estimator2strategy.engine.parameter_servers.servers import Servers
from estimator2strategy.engine.parameter_servers.session_loop import train_in_session
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.runtime.training import Hook

tf1 = tf.compat.v1


def train(
    recording: Recording,
    config: Any,
    hooks: Sequence[Hook],
    saving_listeners: Sequence[tf1.train.CheckpointSaverListener],
    servers: Servers,
) -> Any:
    """Runs the recorded training until a hook stops it or the input ends.

    Must be called with `recording.graph` as the default graph.

    Args:
        servers: The parameter servers, one of which may end.

    Returns:
        The loss of this worker's last step (numpy), None when no step ran.

    Raises:
        UnsupportedError: An op calls Python in another process.
        ValueError: The chief has other variables.
        tf.errors.InternalError: A server or the chief did not come, or a server has ended.

    Source: `Estimator._train_with_estimator_spec`, tensorflow_estimator 2.15.
    """
    spec, recorded = recording.spec, RecordedGraph(recording.graph)
    check_python_ops(recorded, config)
    facts = same_program.facts_of(recorded, getattr(spec.train_op, "op", spec.train_op).name)
    program = same_program.ProgramOnServer(config, servers, facts)
    return train_in_session(
        recording,
        config,
        hooks,
        saving_listeners,
        lambda scaffold: _Creator(config, scaffold, servers, program),
    )


class _Creator(tf1.train.SessionCreator):
    """Makes TensorFlow's session as soon as all servers are there; after an error, makes a new one.

    The chief initialises the variables or restores them; the others wait until it has, and see if
    it has the same ones.

    Source: `MonitoredTrainingSession`, TensorFlow 2.15.
    """

    def __init__(
        self,
        config: Any,
        scaffold: tf1.train.Scaffold,
        servers: Servers,
        program: same_program.ProgramOnServer,
    ):
        self._servers, self._program, self._is_chief = servers, program, config.is_chief
        if config.is_chief:
            self._creator = tf1.train.ChiefSessionCreator(
                scaffold, config.master, config.session_config, checkpoint_dir=config.model_dir
            )
        else:
            self._creator = tf1.train.WorkerSessionCreator(
                scaffold,
                config.master,
                config.session_config,
                max_wait_secs=config.session_creation_timeout_secs,
            )

    def create_session(self) -> Any:
        self._servers.wait()
        if not self._is_chief:
            self._program.check()
        session = self._creator.create_session()
        if self._is_chief:
            self._program.publish()
        session.close = functools.cache(functools.partial(self._servers.close, session.close))
        return session
