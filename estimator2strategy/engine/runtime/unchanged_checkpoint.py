"""Spares a training that is resumed from writing the checkpoint that it has just restored.

The original writes it again, with the same values. Of a large model that takes seconds, of a short
call much of its time; and while it lasts, a kill can damage the only checkpoint. The saver does all
else as ever: it lists the checkpoint as the latest, and removes those that are too many.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.replay.snapshot import SaverSession, shards_of
from estimator2strategy.engine.runtime.saving_session import SavingSession


class Unchanged(SaverSession):
    """A session for a Saver whose files are written already."""

    def save(self, filename: Any) -> bytes:
        """Returns the path, and leaves the files as they are."""
        path: bytes = tf.compat.as_bytes(filename)
        return path


def is_unchanged(path: str, session: tf.compat.v1.Session, saver_def: Any) -> bool:
    """True if `session` was restored from `path`, and a save to it would give the same variables.

    It would not where the program, a hook or a listener has written one since; where the checkpoint
    has more, or has them as objects; and whoever saves other things than variables has them
    written.
    """
    if not isinstance(session, SavingSession) or session.restored_from != path:
        return False
    recorded = session.recorded
    recorded.refresh()
    behind = recorded.ancestors([input_node(saver_def.save_tensor_name)])
    shards = shards_of(session.graph, behind)
    tensors = [tensor.name for shard in shards for tensor in shard.tensors]
    variables = [name for tensor in tensors if (name := recorded.variable_read(tensor))]
    if len(variables) < len(tensors) or not session.is_as_restored(path, variables):
        return False
    names = {tf.compat.as_str(name) for shard in shards for name in shard.names}
    try:
        return names == set(tf.train.load_checkpoint(path).get_variable_to_shape_map())
    except (tf.errors.OpError, ValueError):  # it was removed meanwhile
        return False
