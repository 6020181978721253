"""Training whose optimizer collects gradients in queues, in a process without parameter servers.

`tf.train.SyncReplicasOptimizer` applies gradients in a thread of its own, beside the steps. That
is no function of a step that could be replayed, so the recorded graph runs in a Session here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.parameter_servers.session_loop import train_in_session
from estimator2strategy.engine.plan.queues import collecting_optimizer
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.runtime.training import Hook
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import UnsupportedError

tf1 = tf.compat.v1

_TAKES = {
    "AccumulatorTakeGradient",
    "ResourceAccumulatorTakeGradient",
    "SparseAccumulatorTakeGradient",
}
_TOKENS = "sync_token_q"
# The optimizer's thread waits for the gradient of a step that never comes. The original waited two
# minutes for the thread, then closed the session on it.
_STOP_GRACE_SECS = 1.0


def collects_gradients(graph: tf.Graph) -> bool:
    """True if an optimizer in the graph collects gradients, to apply them in another thread."""
    return collecting_optimizer(graph) is not None


def train(
    recording: Recording,
    config: Any,
    hooks: Sequence[Hook],
    saving_listeners: Sequence[tf1.train.CheckpointSaverListener],
    jit_compile: bool = False,
) -> Any:
    """Runs the recorded training in a Session of this process, as `training.train` replays one.

    Must be called with `recording.graph` as the default graph.

    Args:
        jit_compile: `TrainingOptions.jit_compile`.

    Returns:
        The loss of the last step (numpy), None when no step ran.

    Raises:
        UnsupportedError: The steps were to run on several replicas, on cores or compiled; or one
            process alone would wait for ever.
    """
    if recording.strategy or recording.worker or jit_compile:
        raise UnsupportedError(
            f"{_named(recording.graph)}\n"
            "  It gathers gradients in queues, whose threads feed a live Session. Cores, replicas "
            "and jit_compile have none.\n"
            "  Use the optimizer inside of it: replicas in step take the same means. Or start a "
            "job with `ps` in TF_CONFIG; see migration_guide/cluster.md."
        )

    def creator(scaffold: tf1.train.Scaffold) -> tf1.train.SessionCreator:
        return _Creator(config, scaffold, recording.graph)

    return train_in_session(
        recording, config, hooks, saving_listeners, creator, stop_grace_secs=_STOP_GRACE_SECS
    )


class _Creator(tf1.train.SessionCreator):
    """Makes TensorFlow's session, once the hooks have begun and no step can wait for ever."""

    def __init__(self, config: Any, scaffold: tf1.train.Scaffold, graph: tf.Graph):
        self._graph = graph
        self._creator = tf1.train.ChiefSessionCreator(
            scaffold, config.master, config.session_config, checkpoint_dir=config.model_dir
        )

    def create_session(self) -> Any:
        _check_tokens(self._graph)
        return self._creator.create_session()


def _check_tokens(graph: tf.Graph) -> None:
    """Refuses an optimizer without the tokens that this process needs for its first update.

    A step adds its gradient, then takes a token; an update comes after `replicas_to_aggregate`
    gradients, and brings new tokens. So all steps before it need a token from the start. The hook
    of the chief puts them into the queue.

    Raises:
        UnsupportedError: The first step, or a later one, would wait for ever, as in the original.
    """
    ops = graph.get_operations()
    needed = max((int(_constant(op.inputs[1], 1)) for op in ops if op.type in _TAKES), default=1)
    fills = [op for op in ops if op.type == "QueueEnqueueManyV2" and _is_of_tokens(op)]
    # The first is that of each update. The hook of a chief adds the second, or an op that does not.
    has_hook = len(fills) > 1 or any(op.name.startswith("no_init_tokens") for op in ops)
    tokens = sum(int(_constant(op.inputs[1].op.inputs[0], needed)) for op in fills[1:])
    if not fills or (has_hook and tokens >= needed - 1):
        return
    lacking = (
        f"has {tokens} tokens to start with and needs {needed - 1}: the other steps of an update "
        "are those of other workers, which are not there"
        if has_hook
        else "has no hook make_session_run_hook(is_chief=True) among the training's hooks"
    )
    raise UnsupportedError(
        f"{_named(graph)}\n"
        f"  In this process it {lacking}. Its steps would wait for ever, as they did in TF 1.15.\n"
        "  Start the other workers, with `ps` in TF_CONFIG. For one worker use the optimizer "
        "inside of it: the mean of one gradient is the gradient."
    )


def _is_of_tokens(op: tf.Operation) -> bool:
    queue = op.inputs[0].op
    shared = queue.type == "FIFOQueueV2" and queue.get_attr("shared_name").decode()
    return bool(shared == _TOKENS)


def _constant(tensor: tf.Tensor, otherwise: int) -> Any:
    value = tf.get_static_value(tensor)
    return otherwise if value is None else value.reshape(-1)[0]


def _named(graph: tf.Graph) -> str:
    accumulator = collecting_optimizer(graph)
    line = user_line(accumulator.traceback) if accumulator else None
    return f"tf.train.SyncReplicasOptimizer at {line}"
