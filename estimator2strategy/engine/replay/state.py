"""The state that a Session keeps between runs: variables, tables, iterators, writers.

Each resource-creating node of a recorded graph is made once per replica that uses it, and every
replayed function gets the handle as an input. So two programs in one process never share a table
by accident of its name, and a variable has no value until an init op or a checkpoint gave it one.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph, element_of
from estimator2strategy.engine.plan.host_resources import Found
from estimator2strategy.engine.plan.rewrites import SEED_STRIDE, Rewrite
from estimator2strategy.engine.replay import handle_packing, tpu_variables
from estimator2strategy.engine.replay.gauges import Gauges
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.iterator_end import end_iterator
from estimator2strategy.engine.replay.random_streams import RandomStreams
from estimator2strategy.engine.replay.step_context import Peers

_ITERATORS = frozenset({"IteratorV2", "OneShotIterator"})
_HANDLE_ONLY = _ITERATORS | {"VarHandleOp"}
_SMALL = 2**16  # bytes that are not worth an op


@dataclasses.dataclass(frozen=True)
class Retired:
    """The handles that a State had, and that functions were traced with.

    Attributes:
        handles: Resource-creating node -> its handle on each replica.
        packs: Nodes and replica -> their handles as one tensor.
    """

    handles: Mapping[str, Sequence[tf.Tensor]]
    packs: Mapping[tuple[tuple[str, ...], int], tf.Tensor]


class State:
    """Handles for the resource-creating nodes of one recording.

    Everything is made outside of the functions that are traced: eagerly, or in the `tf.Graph`
    that they are traced in.

    Args:
        recorded: The recording's nodes.
        strategy: The strategy whose replicas run the model; None: one device does.
        replicated: The variables (their VarHandleOps) that each replica has its own copy of.
            Replica 0's is also the one that the host sees. All others are the host's alone.
        peers: The replicas of all processes, where several train in step.

    Attributes:
        gauges: The values that steps leave for the host beside the recorded variables.
        peers: As above.
    """

    def __init__(
        self,
        recorded: RecordedGraph,
        strategy: tf.distribute.Strategy | None = None,
        replicated: Collection[str] = (),
        peers: Peers | None = None,
    ):
        self._recorded = recorded
        self._strategy = strategy
        self._replicated = frozenset(replicated)
        self._copies: dict[str, Sequence[tf.Variable]] = {}
        self._tpu_variables: dict[str, tf.Variable] = {}
        self._with_values: set[str] = set()
        self._resources: dict[str, tf.Tensor] = {}
        self._streams: dict[int, RandomStreams] = {}
        self._packs: dict[tuple[tuple[str, ...], int], tf.Tensor] = {}
        self._unique = uuid.uuid4().hex
        self.gauges = Gauges()
        self.peers = peers

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

    def found(self, node: str) -> Found | None:
        """The way in which a function finds a resource of the host by its name.

        None for variables and iterators: their handles are the only way to them.
        """
        recorded = self._recorded
        if not recorded.creates_resource(node) or "shared_name" not in recorded[node].attr:
            return None
        if recorded[node].op in _HANDLE_ONLY or recorded[node].input:
            return None
        self.handle(node)  # made first
        finder = NodeDef()
        finder.CopyFrom(recorded[node])
        finder.device = self._host(node)
        finder.attr.pop("_class", None)
        self._rename(finder)
        (output,) = recorded.graph.get_operation_by_name(node).op_def.output_arg
        return Found(finder, output.name)

    def variable(self, node: str, replica: int = 0) -> tf.Variable:
        """The variable behind a VarHandleOp, as `replica` sees it."""
        copies = self._all_copies(node)
        return copies[replica] if len(copies) > 1 else copies[0]

    def _all_copies(self, node: str) -> Sequence[tf.Variable]:
        if node not in self._copies:
            with tf.init_scope():
                self._copies[node] = self._make_copies(node)
        return self._copies[node]

    def has_value(self, node: str) -> bool:
        """True if the host's copy of the variable of a VarHandleOp has a value.

        It keeps one that it has, so nobody is asked again: that is an op for each variable, three
        times at the start of each call.
        """
        if node not in self._with_values:
            if not tf.raw_ops.VarIsInitializedOp(resource=self.handle(node)):
                return False
            self._with_values.add(node)
        return True

    def tpu_variable(self, node: str) -> tf.Variable | None:
        """The TPUStrategy's variable of which `variable(node, replica)` are the copies.

        Its `handle`, asked for inside `strategy.run`, stands for each replica's own copy. None if
        the variable is the host's.
        """
        self.variable(node)
        return self._tpu_variables.get(node)

    def random_streams(self, replica: int = 0) -> RandomStreams:
        """The random streams of a replica; those of the first one are the host's too."""
        if replica not in self._streams:
            self._streams[replica] = self._make_streams(replica)
        return self._streams[replica]

    def _make_streams(self, replica: int) -> RandomStreams:
        if not (self._strategy and replica):
            return RandomStreams("/CPU:0")
        device = self._strategy.extended.worker_devices[replica]
        return RandomStreams(device, self.random_streams(), replica * SEED_STRIDE)

    def random_places(self) -> dict[str, dict[str, int]]:
        """For each replica, by its number, where its seeded random ops are in their streams."""
        return {str(replica): streams.places() for replica, streams in self._streams.items()}

    def move_random(self, places: Mapping[str, Mapping[str, int]]) -> None:
        """Makes seeded random ops go on from `random_places` of another session."""
        for replica, of_ops in places.items():
            self.random_streams(int(replica)).move(of_ops)

    def made(self, *ops: str) -> list[str]:
        """Returns the nodes of these types whose resource exists already."""
        return [node for node in self._resources if self._recorded[node].op in ops]

    def counterparts(
        self, captured: Iterable[tf.Tensor], nodes: Iterable[str], replica: int
    ) -> dict[int, tf.Tensor]:
        """Finds the handles of `replica` for the handles `captured`, which are replica 0's.

        Args:
            captured: Handles of resources, and of random streams.
            nodes: The resource-creating nodes among them.

        Returns:
            Handles, by the id of replica 0's.
        """
        handles = {id(self.handle(node)): self.handle(node, replica) for node in nodes}
        if replica:
            handles |= self.random_streams(replica).counterparts(captured)
        return handles

    def packable(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """Returns those of the resource-creating `nodes` that `pack` takes."""
        if not handle_packing.share_a_cpu(self._strategy):
            return ()
        return tuple(node for node in nodes if node in self._replicated)

    def pack(self, nodes: tuple[str, ...], replica: int = 0) -> tf.Tensor:
        """The handles of `nodes` as one tensor, made at the first call."""
        if (nodes, replica) not in self._packs:
            assert self._strategy
            device = self._strategy.extended.worker_devices[replica]
            handles = [self.handle(node, replica) for node in nodes]
            self._packs[nodes, replica] = handle_packing.pack(handles, device)
        return self._packs[nodes, replica]

    def broadcast(self, nodes: Iterable[str]) -> None:
        """Gives every replica the value that replica 0 has of each of the variables `nodes`."""
        shared = self._replicated.intersection(nodes)
        if tpu_variables.is_tpu(self._strategy):
            assert self._strategy
            copies = [self._all_copies(node) for node in sorted(shared)]
            tpu_variables.to_all_cores(copies, self._strategy.extended.worker_devices)
            return
        for node in shared:
            source = self.variable(node)
            if self.has_value(node):
                for replica in range(1, self.num_replicas):
                    self.variable(node, replica).assign(source.read_value())

    def _make_copies(self, node: str) -> Sequence[tf.Variable]:
        attr = self._recorded[node].attr
        shape, dtype = tf.TensorShape(attr["shape"].shape), tf.as_dtype(attr["dtype"].type)
        devices: Sequence[str | None]
        if self._strategy is None:
            devices = [None]
        elif node not in self._replicated:
            devices = ["/CPU:0"]
        elif tpu_variables.is_tpu(self._strategy):
            variable = tpu_variables.uninitialized_variable(self._strategy, node, shape, dtype)
            self._tpu_variables[node] = variable
            of_cores: Sequence[tf.Variable] = self._strategy.experimental_local_results(variable)
            return of_cores
        else:
            devices = self._strategy.extended.worker_devices
        # A reference variable without elements had a value from the start, and let an assignment
        # change its shape: programs gather strings in one that no init op knows.
        is_empty = shape.num_elements() == 0
        copies = []
        for device in devices:
            with tf.device(device):
                # Without a name: TensorFlow builds a kernel, 0.6 ms, for each it has not seen yet.
                held = tf.TensorShape(None) if is_empty else shape
                copies.append(_tf_private.UninitializedVariable(shape=held, dtype=dtype))
                if is_empty:
                    copies[-1].assign(tf.zeros(shape, dtype))
        return copies

    def _make_resource(self, node: str) -> tf.Tensor:
        with tf.init_scope(), tf.device(self._host(node)):
            if self._recorded[node].op in _ITERATORS and tf.executing_eagerly():
                return self._make_iterator(node)
            return self._run(node, self._rename)

    def _host(self, node: str) -> str:
        return self._recorded.host_of(node) or "/CPU:0"

    def _make_iterator(self, node: str) -> tf.Tensor:
        """An iterator that lives as long as its handle, as those of eager datasets do.

        The kernel of the recorded op would keep it as long as the function that it is part of. And
        where a function is freed Python is locked, so that a generator which has to end with the
        iterator would wait for ever.
        """
        handle = tf.raw_ops.AnonymousIteratorV3(**element_of(self._recorded[node]))
        if "dataset_factory" in self._recorded[node].attr:
            dataset = self._run(node, _call_dataset_factory)
            tf.raw_ops.MakeIterator(dataset=dataset, iterator=handle)
        return handle

    def _run(self, node: str, rewrite: Callable[[NodeDef], None]) -> tf.Tensor:
        """The result of the node, changed by `rewrite`."""

        def run() -> list[tf.Tensor]:
            importer = GraphImporter(
                self._recorded,
                self.handle,
                rewrite=Rewrite("", rewrite),
                making=(node,),
                name=f"replay_{self._unique}",
            )
            return importer.fetch([f"{node}:0"])

        (result,) = tf.function(run, autograph=False).get_concrete_function()()
        return result

    def _rename(self, node: NodeDef) -> None:
        """Gives a node a name of its own, so that two programs never share a table by accident."""
        if "shared_name" in node.attr:
            name = node.attr["shared_name"].s.decode() or node.name
            node.attr["shared_name"].s = f"{name}_{self._unique}".encode()

    def retire(self) -> Retired:
        """Frees everything, as `close` does; returns what `revive` makes again."""
        handles = {node: [copy.handle for copy in copies] for node, copies in self._copies.items()}
        handles |= {node: [handle] for node, handle in self._resources.items()}
        retired = Retired(handles, dict(self._packs))
        streams = dict(self._streams)
        self.close()
        self._streams = streams
        return retired

    def revive(self, retired: Retired) -> dict[int, tf.Tensor]:
        """Makes again, without values, what `retire` has freed.

        Returns:
            The new handles, by the id of the old one.
        """
        for of_replica in self._streams.values():
            of_replica.rewind()
        new = {
            id(handle): self.handle(node, replica)
            for node, handles in retired.handles.items()
            for replica, handle in enumerate(handles)
        }
        new |= {id(handles): self.pack(*key) for key, handles in retired.packs.items()}
        return new | self.gauges.reset()

    def close(self) -> None:
        """Frees everything that outlives its handle: iterators with their threads, tables, writers.

        Also frees the memory of variables: the graphs of loops are cycles, in which handles live
        on until Python collects its garbage.
        """
        for node, handle in self._resources.items():
            if self._recorded[node].op in _ITERATORS and tf.executing_eagerly():
                end_iterator(self._recorded, node, handle)
            else:
                tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)
        if tf.executing_eagerly():
            for node in self._copies.keys() - self._tpu_variables.keys():
                for copy in self._copies[node]:
                    _let_go(copy)
        self._resources.clear()
        self._copies.clear()
        self._packs.clear()
        self._streams.clear()
        self._tpu_variables.clear()
        self._with_values.clear()


def _let_go(variable: tf.Variable) -> None:
    """Frees the memory of a large variable, whose value then is a scalar."""
    size, dtype = variable.shape.num_elements(), variable.dtype
    if not (dtype.is_floating or dtype.is_integer) or (size or _SMALL) * dtype.size < _SMALL:
        return
    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=tf.constant(0, dtype))


def _call_dataset_factory(node: NodeDef) -> None:
    """Turns a OneShotIterator into the call of the function that makes its dataset."""
    if node.op != "OneShotIterator":
        return
    factory = node.attr["dataset_factory"].func.name
    node.op = "StatefulPartitionedCall"
    node.attr.clear()
    node.attr["f"].func.name = factory
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.type.append(tf.variant.as_datatype_enum)
