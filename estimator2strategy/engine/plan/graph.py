"""A recorded graph as plain nodes. It finds the nodes that a replay has to run.

Nothing here executes TensorFlow. A `RecordedGraph` is read from the `tf.Graph` that a legacy
function built, and answers with node names in creation order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.calls import as_partitioned_calls
from estimator2strategy.engine.plan.edges import input_node, put_labels, tensor_name
from estimator2strategy.engine.plan.effects import (
    READERS,
    calls_python,
    changes_something,
)
from estimator2strategy.engine.plan.hoisted_factors import hoist_factors
from estimator2strategy.engine.plan.reads import drop_empty_waits, open_gates, reads_of_updates
from estimator2strategy.engine.plan.shared_memory import (
    early_gathers,
    gathers_first,
    split_reads,
    writes,
)
from estimator2strategy.engine.worlds import REFERENCES

NodeDef: TypeAlias = tf.compat.v1.NodeDef

_TAKERS = frozenset({"IteratorGetNext", "IteratorGetNextSync"})

# The ops of `tf.compat.v1.summary`.
SUMMARIES = frozenset(
    {
        *("AudioSummary", "AudioSummaryV2", "HistogramSummary", "ImageSummary", "MergeSummary"),
        *("ScalarSummary", "TensorSummary", "TensorSummaryV2"),
    }
)

# The collection of a recorded graph in which each entry is the name of an op, and the names of the
# tensors that are to take the place of its outputs in a replay; spaces are between them.
STAND_INS = "estimator2strategy/stand_ins"


def element_of(node: NodeDef) -> dict[str, list[Any]]:
    """The attributes of an iterator, or of a node that takes from it, that define a batch."""
    return {
        "output_types": [tf.as_dtype(dtype) for dtype in node.attr["output_types"].list.type],
        "output_shapes": [tf.TensorShape(s) for s in node.attr["output_shapes"].list.shape],
    }


class RecordedGraph:
    """The nodes of a recorded `tf.Graph`, in creation order.

    The order matters: a replay runs side effects on one resource in the order in which the legacy
    program made them.

    This object keeps the `tf.Graph` alive, because the callbacks of `tf.py_func` die with it, until
    `let_go` is called.

    Args:
        graph: The graph that a legacy function built.
        hosts: Devices of the hosts that feed the cores, as nodes name them. A replayed node keeps
            such a device; all other devices that a program names are dropped.
    """

    def __init__(self, graph: tf.Graph, hosts: Collection[str] = ()):
        self._graph: tf.Graph | None = graph
        self._is_other_graph = False  # another one than that from which the nodes were read
        self.hosts = frozenset(hosts)
        self._version = -1
        self.refresh()

    @property
    def graph(self) -> tf.Graph:
        """The graph, or one that is the same; see `attach`."""
        if self._graph is None:
            raise ValueError("The recorded graph was let go: its call is over.")
        return self._graph

    def let_go(self) -> None:
        """Lets the `tf.Graph` be freed, and keeps the nodes, until `attach` is called."""
        self._graph = None

    def attach(self, graph: tf.Graph) -> None:
        """Takes a graph with the same fingerprint in the place of that which was let go."""
        self._graph, self._version, self._is_other_graph = graph, graph.version, True

    def refresh(self) -> None:
        """Reads nodes that were added since the last look (hooks and scaffolds add some)."""
        if self.graph.version == self._version:
            return
        self._version, self._is_other_graph = self.graph.version, False
        graph_def = self.graph.as_graph_def()
        put_labels(graph_def)
        as_partitioned_calls(graph_def)
        open_gates(graph_def.node)
        drop_empty_waits(graph_def.node)
        self.versions = graph_def.versions
        self.library = {f.signature.name: f for f in graph_def.library.function}
        self.references = frozenset(self.graph.get_collection(REFERENCES))
        nodes = list(graph_def.node)
        if self.references:
            nodes = hoist_factors(nodes, self.references, self.graph)
        self._updates = reads_of_updates(nodes, self.references)
        writers = writes(nodes, self.references)
        self.nodes = split_reads(nodes, writers, self._updates)
        self.position = {node.name: i for i, node in enumerate(self.nodes)}
        self._early_gathers = early_gathers(self.nodes, writers)
        for names in self.graph.get_collection(STAND_INS):
            op, *tensors = names.split()
            self._replace(op, tensors)

    def _replace(self, op: str, tensors: Sequence[str]) -> None:
        """Makes what was recorded on `op` use `tensors`, which were recorded later."""
        place = self.position[op]
        late = [
            name for name in self.ancestors(map(input_node, tensors)) if self.position[name] > place
        ]
        types = [self.graph.get_tensor_by_name(t).dtype.as_datatype_enum for t in tensors]
        node = self.nodes[place]
        node.attr.clear()
        if len(types) == 1:
            node.op, node.attr["T"].type = "Identity", types[0]
        else:
            node.op = "IdentityN"
            node.attr["T"].list.type.extend(types)
        node.input[:] = tensors
        moved = set(late)
        rest = [node for node in self.nodes[place:] if node.name not in moved]
        self.nodes[place:] = [self[name] for name in late] + rest
        self.position = {node.name: i for i, node in enumerate(self.nodes)}

    def __getitem__(self, name: str) -> NodeDef:
        return self.nodes[self.position[name]]

    def host_of(self, name: str) -> str:
        """The host's device that a node runs on; "" where it does not matter."""
        device = self[name].device
        return device if device in self.hosts else ""

    def touches_variable(self, name: str) -> bool:
        """True if a node reads or writes a variable, itself or in a function that it calls."""
        return any(self[input_node(edge)].op == "VarHandleOp" for edge in self[name].input)

    def creates_resource(self, name: str) -> bool:
        """True if a node makes a variable, table, iterator, writer...

        A Session kept such a thing between runs. Here it is made once, and every replay gets it
        as an argument.
        """
        node = self[name]
        if "shared_name" not in node.attr and node.input:
            return False
        outputs = self.graph.get_operation_by_name(name).outputs
        return bool(outputs) and all(t.dtype == tf.resource for t in outputs)

    def ancestors(
        self, names: Iterable[str], stop: Callable[[str], bool] = lambda edge: False
    ) -> list[str]:
        """The nodes among and behind `names`, in creation order.

        Args:
            names: Nodes that must run.
            stop: Told each edge as a NodeDef spells it (`x`, `x:1`, `^x`); true where the walk
                must not go on, because that value is supplied from elsewhere.
        """
        seen: set[str] = set()
        frontier = list(names)
        while frontier:
            name = frontier.pop()
            if name in seen:
                continue
            seen.add(name)
            frontier.extend(input_node(edge) for edge in self[name].input if not stop(edge))
        return sorted(seen, key=self.position.__getitem__)

    def reads_at_once(self, name: str) -> bool:
        """True if a node reads a variable without waiting for anything."""
        node = self[name]
        return node.op == "ReadVariableOp" and len(node.input) == 1

    def comes_first(self, name: str) -> bool:
        """True if a node reads a variable before the step's writes; see `plan/reads.py`.

        A Session ran such a read as a step began, wherever the program had written it down:
        `tf.identity(global_step)` made after `minimize` is the step before it.
        """
        return self.reads_at_once(name) and name not in self._updates

    def in_order_of_effects(self, names: Sequence[str]) -> list[str]:
        """Nodes, given in creation order, in the order in which a replay has their effects."""
        gathers = self._early_gathers.intersection(names)
        if gathers:
            inputs = {name: [input_node(edge) for edge in self[name].input] for name in names}
            written = {name: self.written_by(name) for name in names}
            names = gathers_first(names, gathers, inputs, written)
        # Stable, so all else stays in program order.
        return sorted(names, key=lambda name: not self.comes_first(name))

    def is_read(self, name: str) -> bool:
        """True if a node gives the value, or rows, of a variable."""
        return self[name].op in {"ReadVariableOp", "ResourceGather"}

    def shape(self, tensor: str) -> tf.TensorShape:
        """The static shape of a recorded tensor, as far as it is known."""
        return tf.TensorShape(self.graph.get_tensor_by_name(tensor).shape.as_proto())

    def variable_read(self, tensor: str) -> str | None:
        """The VarHandleOp whose value, and nothing else, is `tensor`; None if it is more."""
        name = input_node(tensor)
        while self[name].op == "Identity" and len(self[name].input) == 1:
            name = input_node(self[name].input[0])
        if not self.reads_at_once(name):
            return None
        variable = input_node(self[name].input[0])
        return variable if self[variable].op == "VarHandleOp" else None

    def variables_behind(
        self, names: Iterable[str], stop: Callable[[str], bool] = lambda edge: False
    ) -> set[str]:
        """The variables (their VarHandleOps) that the nodes among and behind `names` use.

        Args:
            stop: As for `ancestors`.
        """
        return {n for n in self.ancestors(names, stop) if self[n].op == "VarHandleOp"}

    def variables_written(
        self, names: Iterable[str], stop: Callable[[str], bool] = lambda edge: False
    ) -> list[str]:
        """The variables that some op among or behind `names` (ops or tensors) may write to.

        Args:
            stop: As for `ancestors`.
        """
        behind = self.ancestors(map(input_node, names), stop)
        return sorted({variable for name in behind for variable in self.written_by(name)})

    def written_by(self, name: str) -> list[str]:
        """The variables that the op `name` itself may write to."""
        if self[name].op in READERS:
            return []
        sources = map(input_node, self[name].input)
        return [source for source in sources if self[source].op == "VarHandleOp"]

    def only_next_batch(self, names: Iterable[str]) -> str | None:
        """The one node among and behind `names` that takes a batch; None if there is not just one.

        See `next_batches`.
        """
        takers = self.next_batches(names)
        return takers[0] if len(takers) == 1 else None

    def next_batches(self, names: Iterable[str]) -> list[str]:
        """The nodes among and behind `names` that take batches, in their order.

        None of them if one hides in a function, or if one gets its iterator other than from the
        node that makes it.
        """
        behind = self.ancestors(names)
        called = (self.library[name] for name in self.functions_behind(behind))
        hidden = any(node.op in _TAKERS for function in called for node in function.node_def)
        takers = [name for name in behind if self.takes_batch(name)]
        iterators = (input_node(self[taker].input[0]) for taker in takers)
        return takers if not hidden and all(map(self.creates_resource, iterators)) else []

    def takes_batch(self, name: str) -> bool:
        """True if a node takes a batch from an iterator."""
        return self[name].op in _TAKERS

    def is_pure(self, names: Iterable[str], taker: str) -> bool:
        """True if running `names` has no effect but that the node `taker` takes a batch."""
        behind = self.ancestors(names, lambda edge: input_node(edge) == taker)
        running = [name for name in behind if name != taker and not self.creates_resource(name)]
        return not self.have_effects(running)

    def have_effects(self, names: Collection[str]) -> bool:
        """True if running one of the nodes `names` changes anything."""
        return any(map(changes_something, self.with_functions(names)))

    def with_functions(self, names: Collection[str]) -> Iterator[NodeDef]:
        """The nodes `names`, and those of the functions that they call."""
        yield from map(self.__getitem__, names)
        for function in self.functions_behind(names):
            yield from self.library[function].node_def

    def runs_python(self) -> bool:
        """True if anything in the graph, the functions of datasets among it, calls Python."""
        inner = (node for function in self.library.values() for node in function.node_def)
        return any(map(calls_python, itertools.chain(self.nodes, inner)))

    def call_python(self, names: Collection[str]) -> bool:
        """True if running the nodes `names` calls Python."""
        return any(map(calls_python, self.with_functions(names)))

    def writers_without_input(
        self, names: Iterable[str], fed: Collection[str]
    ) -> tuple[set[str], list[str]]:
        """(those of `names` that write a variable whatever the batch is, those the batch is from).

        A step whose input has ended must change nothing, so the former have to wait for the
        latter. A counter is such a one.

        Args:
            fed: Nodes whose values are supplied, as part of a batch is to a replica.
        """
        names = list(names)
        takers = [name for name in names if self[name].op in _TAKERS] + list(fed)
        if not takers:
            return set(), []
        behind = set(self.ancestors(takers))
        following = set(takers)
        writers = set()
        for name in names:  # creation order: inputs first, but for the back edges of v1 loops
            edges = [input_node(edge) for edge in self[name].input]
            if following.intersection(edges):
                following.add(name)
            elif name not in behind and self.written_by(name) and self.have_effects([name]):
                writers.add(name)
        return writers, takers

    def frontier(
        self,
        tensors: Iterable[str],
        ops: Iterable[str],
        inner: Iterable[str],
        outputs: Iterable[str],
    ) -> list[str]:
        """The tensors that leave the inside of a splice on the way to `tensors` and `ops`.

        Args:
            inner: Tensors that exist inside only; what depends on them is inside too.
            outputs: Tensors that the splice returns; what depends on them is outside. So are
                summaries: they are strings, which no TPU core can make.
        """
        tensors = list(tensors)
        roots = {*map(input_node, tensors), *ops}
        stops = {input_node(name) for name in outputs}
        inside, outside = set(map(input_node, inner)), set(stops)
        leaving: dict[str, None] = {}
        for name in self.ancestors(roots, lambda edge: input_node(edge) in stops):
            sources = [input_node(edge) for edge in self[name].input]
            if outside.intersection(sources) or self[name].op in SUMMARIES:
                outside.add(name)
                for edge in self[name].input:
                    if input_node(edge) in inside and not edge.startswith("^"):
                        leaving[tensor_name(edge)] = None
            elif inside.intersection(sources):
                inside.add(name)
        leaving.update((name, None) for name in tensors if input_node(name) in inside)
        return [name for name in leaving if name not in outputs]

    def functions_behind(self, names: Iterable[str]) -> Iterator[str]:
        """Names of the library functions that nodes call, directly or through one another."""
        seen: set[str] = set()
        frontier = [self[name] for name in names] if self.library else []
        while frontier:
            node = frontier.pop()
            plain = _tf_private.plain_attrs(node.op)
            for key in sorted(key for key in node.attr if key not in plain):
                attr = node.attr[key]
                for called in (attr.func.name, *(f.name for f in attr.list.func)):
                    if called in self.library and called not in seen:
                        seen.add(called)
                        frontier.extend(self.library[called].node_def)
                        yield called

    def name_in_graph(self, function: str) -> str:
        """The name that `graph` has for a library function: TensorFlow makes names up."""
        if not self._is_other_graph:
            return function
        now = RecordedGraph(self.graph)
        pairs = (recorded.functions_behind(recorded.position) for recorded in (self, now))
        names: dict[str, str] = dict(zip(*pairs, strict=True))
        return names.get(function, function)
