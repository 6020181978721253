"""What a Session would have kept between runs: variables, tables, iterators, writers.

Each resource-creating node of a recorded graph is made once per replica that uses it, and every
replayed function gets the handle as an input. So two programs in one process never share a table
by accident of its name, and a variable has no value until an init op or a checkpoint gave it one.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy import _tf_private
from estimator2strategy.plan.graph import NodeDef, RecordedGraph
from estimator2strategy.plan.rewrites import Rewrite
from estimator2strategy.replay import tpu
from estimator2strategy.replay.importer import GraphImporter


class State:
    """Handles for the resource-creating nodes of one recording.

    Everything is made outside of the functions that are traced: eagerly, or in the `tf.Graph`
    that they are traced in.

    Args:
        recorded: The recording's nodes.
        strategy: Over whose replicas the model runs; None: on one device.
        on_cores: The variables (their VarHandleOps) that each replica has its own copy of.
            Replica 0's is also the one that the host sees. All others are the host's alone.
    """

    def __init__(
        self,
        recorded: RecordedGraph,
        strategy: tf.distribute.Strategy | None = None,
        on_cores: Collection[str] = (),
    ):
        self._recorded = recorded
        self._strategy = strategy
        self._on_cores = frozenset(on_cores)
        self._copies: dict[str, Sequence[tf.Variable]] = {}
        self._tpu_variables: dict[str, tf.Variable] = {}
        self._resources: dict[str, tf.Tensor] = {}
        # A one-shot iterator goes when the function does that made it.
        self._makers: list[Any] = []
        self._unique = uuid.uuid4().hex

    @property
    def num_replicas(self) -> int:
        return self._strategy.num_replicas_in_sync if self._strategy else 1

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
        if node not in self._copies:
            with tf.init_scope():
                self._copies[node] = self._make_copies(node)
        copies = self._copies[node]
        return copies[replica] if len(copies) > 1 else copies[0]

    def tpu_variable(self, node: str) -> tf.Variable | None:
        """The TPUStrategy's variable of which `variable(node, replica)` are the copies.

        Its `handle`, asked for inside `strategy.run`, stands for each replica's own copy. None if
        the variable is the host's.
        """
        self.variable(node)
        return self._tpu_variables.get(node)

    def broadcast(self, nodes: Iterable[str]) -> None:
        """Gives every replica the value that replica 0 has of each of the variables `nodes`."""
        for node in self._on_cores.intersection(nodes):
            source = self.variable(node)
            if tf.raw_ops.VarIsInitializedOp(resource=source.handle):
                for replica in range(1, self.num_replicas):
                    self.variable(node, replica).assign(source.read_value())

    def _make_copies(self, node: str) -> Sequence[tf.Variable]:
        attr = self._recorded[node].attr
        shape, dtype = tf.TensorShape(attr["shape"].shape), tf.as_dtype(attr["dtype"].type)
        devices: Sequence[str | None]
        if self._strategy is None:
            devices = [None]
        elif node not in self._on_cores:
            devices = ["/CPU:0"]
        elif tpu.is_tpu(self._strategy):
            variable = tpu.uninitialized_variable(self._strategy, node, shape, dtype)
            self._tpu_variables[node] = variable
            return self._strategy.experimental_local_results(variable)
        else:
            devices = self._strategy.extended.worker_devices
        copies = []
        for device in devices:
            with tf.device(device):
                copies.append(
                    _tf_private.UninitializedVariable(shape=shape, dtype=dtype, name=node)
                )
        return copies

    def _make_resource(self, node: str) -> tf.Tensor:
        """Runs the node on its host, under a name of its own, and keeps what it returns."""

        def make():
            importer = GraphImporter(
                self._recorded,
                self.handle,
                rewrite=Rewrite("", self._rename),
                making=(node,),
                name=f"replay_{self._unique}",
            )
            return importer.fetch([f"{node}:0"])

        device = self._recorded.host_of(node) or "/CPU:0"
        with tf.init_scope(), tf.device(device):
            maker = tf.function(make, autograph=False).get_concrete_function()
            self._makers.append(maker)
            (handle,) = maker()
            return handle

    def _rename(self, node: NodeDef) -> None:
        if node.op == "OneShotIterator":
            node.attr["shared_name"].s = b""  # it takes none: it goes by its node's name
        elif "shared_name" in node.attr:
            name = node.attr["shared_name"].s.decode() or node.name
            node.attr["shared_name"].s = f"{name}_{self._unique}".encode()

    def close(self) -> None:
        """Frees what outlives its handle: iterators with their threads, tables, writers."""
        for handle in self._resources.values():
            tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)
        self._resources.clear()
        self._makers.clear()
        self._copies.clear()
        self._tpu_variables.clear()
