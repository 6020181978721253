"""What a Session would have kept between runs: variables, tables, iterators, writers.

Each resource-creating node of a recorded graph is made once per replica that uses it, and every
replayed function gets the handle as an input. So two programs in one process never share a table
by accident of its name, and a variable has no value until an init op or a checkpoint gave it one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import tensorflow as tf

from estimator2strategy import _tf_private
from estimator2strategy.plan.graph import RecordedGraph
from estimator2strategy.plan.rewrites import Rewrite
from estimator2strategy.record.legacy import modern_world
from estimator2strategy.replay.importer import GraphImporter


class State:
    """Handles for the resource-creating nodes of one recording.

    Args:
        recorded: The recording's nodes.
        devices: One device per replica. Replica 0 is also the one that the host sees.
    """

    def __init__(self, recorded: RecordedGraph, devices: Sequence[str] = ("",)):
        self._recorded = recorded
        self._devices = tuple(devices)
        self._variables: dict[tuple[str, int], tf.Variable] = {}
        self._resources: dict[str, tf.Tensor] = {}
        self._unique = uuid.uuid4().hex

    @property
    def num_replicas(self) -> int:
        return len(self._devices)

    def handle(self, node: str, replica: int = 0) -> tf.Tensor:
        """The resource handle that stands for `node`, made at the first call.

        Variables have one handle per replica; all else (tables, iterators) lives on the host.
        """
        if self._recorded[node].op == "VarHandleOp":
            return self.variable(node, replica).handle
        if node not in self._resources:
            self._resources[node] = self._make_resource(node)
        return self._resources[node]

    def variable(self, node: str, replica: int = 0) -> tf.Variable:
        """The variable behind a VarHandleOp, as `replica` sees it."""
        key = (node, replica)
        if key not in self._variables:
            attr = self._recorded[node].attr
            with modern_world(), tf.device(self._devices[replica] or None):
                self._variables[key] = _tf_private.UninitializedVariable(
                    shape=tf.TensorShape(attr["shape"].shape),
                    dtype=tf.as_dtype(attr["dtype"].type),
                    name=node,
                )
        return self._variables[key]

    def broadcast(self, nodes: Iterable[str]) -> None:
        """Gives every replica the value that replica 0 has of each of the variables `nodes`."""
        for node in nodes:
            source = self.variable(node)
            if tf.raw_ops.VarIsInitializedOp(resource=source.handle):
                for replica in range(1, self.num_replicas):
                    self.variable(node, replica).assign(source.read_value())

    def _make_resource(self, node: str) -> tf.Tensor:
        """Runs the node, under a name of its own, and keeps what it returns."""

        def make():
            importer = GraphImporter(
                self._recorded,
                self.handle,
                rewrite=Rewrite("", self._rename),
                making=(node,),
            )
            return importer.fetch([f"{node}:0"])[0]

        with modern_world(), tf.device("/CPU:0"):
            return tf.function(make, autograph=False)()

    def _rename(self, node) -> None:
        if "shared_name" in node.attr:
            name = node.attr["shared_name"].s.decode() or node.name
            node.attr["shared_name"].s = f"{name}_{self._unique}".encode()

    def close(self) -> None:
        """Frees what outlives its handle: iterators with their threads, tables, writers."""
        for handle in self._resources.values():
            tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)
        self._resources.clear()
        self._variables.clear()
