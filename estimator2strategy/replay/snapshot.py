"""The values that a save op writes, as they are now, to be written while training goes on.

Nothing is copied: TensorFlow gives a variable new memory when it is changed while somebody still
holds the value that was read from it.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy import _tf_private
from estimator2strategy.plan.graph import input_node, tensor_name
from estimator2strategy.record.legacy import modern_world

# The inputs of a SaveV2 before the tensors: the file, their names, their slices.
_BEFORE_TENSORS = 3


class Snapshot(_tf_private.SessionInterface):
    """A session for `tf.compat.v1.train.Saver.save` alone, which may be used in another thread.

    Args:
        session: The ReplaySession whose variables are to be written.
        saver_def: Which of its tensors the saver feeds and fetches.
    """

    def __init__(self, session: Any, saver_def: Any):
        save, filename = saver_def.save_tensor_name, saver_def.filename_tensor_name
        recorded = session.recorded
        recorded.refresh()
        saves = [
            recorded[name]
            for name in recorded.ancestors([input_node(save)])
            if recorded[name].op == "SaveV2"
        ]
        edges = [edge for node in saves for edge in node.input[_BEFORE_TENSORS:]]
        tensors = tuple(
            dict.fromkeys(tensor_name(edge) for edge in edges if not edge.startswith("^"))
        )
        self._graph, self._save = session.graph, save
        with modern_world():
            # Traced here: tracing is nothing for a thread beside one that trains.
            self._write = session.traced((save,), (), (filename, *tensors))
            self._values = session.traced(tensors)()

    @property
    def graph(self):
        return self._graph

    @property
    def sess_str(self) -> str:
        return ""

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Writes the values to the file that is fed; returns its path as bytes."""
        del options, run_metadata
        assert fetches == self._save
        (filename,) = (feed_dict or {}).values()
        with _tf_private.eager_mode():
            (path,) = self._write(tf.constant(filename), *self._values)
        return path.numpy()

    def partial_run_setup(self, fetches, feeds=None):
        raise NotImplementedError

    def partial_run(self, handle, fetches, feed_dict=None):
        raise NotImplementedError
