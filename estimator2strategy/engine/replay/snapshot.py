"""Holds the values that a save op writes, so that training goes on while they are written.

Nothing is copied: TensorFlow gives a variable new memory when it is changed while somebody still
holds the value that was read from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private, _tf_switches
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.replay.engines import Request
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import modern_world


@dataclasses.dataclass(frozen=True)
class Shard:
    """The work of one SaveV2: its file, and each tensor with its name and slice."""

    prefix: tf.Tensor
    names: Sequence[bytes]
    slices: Sequence[bytes]
    tensors: Sequence[tf.Tensor]

    @classmethod
    def of_save(cls, operation: tf.Operation) -> Shard:
        prefix, names, slices, *tensors = operation.inputs
        return cls(prefix, tf.get_static_value(names), tf.get_static_value(slices), tensors)


def shards_of(graph: tf.Graph, nodes: Iterable[str]) -> list[Shard]:
    """The work of each SaveV2 among the nodes behind a saver's `save_tensor_name`."""
    operations = map(graph.get_operation_by_name, nodes)
    return [Shard.of_save(operation) for operation in operations if operation.type == "SaveV2"]


class SaverSession(_tf_private.SessionInterface):
    """A session for `tf.compat.v1.train.Saver.save` alone, which runs nothing but its save op.

    Args:
        graph: The graph that has the saver's ops.
        saver_def: Which of its tensors the saver feeds and fetches. It is of version 2.
    """

    def __init__(self, graph: tf.Graph, saver_def: Any):
        self._graph, self._save = graph, saver_def.save_tensor_name

    def save(self, filename: Any) -> Any:
        """Does the work of the save op; returns the path that it was given, as bytes."""
        raise NotImplementedError

    @property
    def graph(self) -> tf.Graph:
        return self._graph

    @property
    def sess_str(self) -> str:
        return ""

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Runs the save op, whose one feed is the path of the checkpoint."""
        del options, run_metadata
        assert fetches == self._save
        (filename,) = (feed_dict or {}).values()
        return self.save(filename)

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> Any:
        raise NotImplementedError

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Any = None) -> Any:
        raise NotImplementedError


class Snapshot(SaverSession):
    """The values of the variables as they are when it is made; another thread may write them.

    Args:
        session: The ReplaySession whose variables are to be written.
        saver_def: As of SaverSession.
    """

    def __init__(self, session: ReplaySession, saver_def: Any):
        super().__init__(session.graph, saver_def)
        save, filename = saver_def.save_tensor_name, saver_def.filename_tensor_name
        recorded, graph = session.recorded, session.graph
        recorded.refresh()
        behind = recorded.ancestors([input_node(save)])
        self._shards = shards_of(graph, behind)
        self._is_merged = any(recorded[name].op == "MergeV2Checkpoints" for name in behind)
        names = dict.fromkeys(tensor.name for shard in self._shards for tensor in shard.tensors)
        with modern_world():
            # Traced here: tracing is nothing for a thread beside one that trains.
            prefixes = tuple(shard.prefix.name for shard in self._shards)
            self._prefixes = session.runs.function(Request(prefixes, (), (filename,)))
            self._values = dict(
                zip(names, session.runs.function(Request(tuple(names)))(), strict=True)
            )

    def save(self, filename: Any) -> Any:
        """Writes the values to a file; returns its path as bytes."""
        with _tf_switches.eager_mode():
            path = tf.constant(filename)
            prefixes = self._prefixes(path)
            # Threads of their own: those of TensorFlow are for the steps that run beside this.
            with ThreadPoolExecutor(len(prefixes)) as pool:
                list(pool.map(self._write, self._shards, prefixes))
            if self._is_merged:
                tf.raw_ops.MergeV2Checkpoints(
                    checkpoint_prefixes=prefixes, destination_prefix=path, delete_old_dirs=True
                )
        return path.numpy()

    def _write(self, shard: Shard, prefix: tf.Tensor) -> None:
        with _tf_switches.eager_mode(), tf.device("/CPU:0"):
            tf.raw_ops.SaveV2(
                prefix=prefix,
                tensor_names=shard.names,
                shape_and_slices=shard.slices,
                tensors=[self._values[tensor.name] for tensor in shard.tensors],
            )
