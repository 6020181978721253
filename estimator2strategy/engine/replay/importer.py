"""Imports parts of a recorded graph into the TF2 function that is being traced.

    importer = GraphImporter(recorded, handle_of)
    (loss,) = importer.fetch(["loss:0"])          # imports what loss needs
    (step,) = importer.fetch(["global_step:0"])   # imports what is still missing

Each recorded node is imported at most once per importer, however many fetches need it: a node that
takes a batch or draws a random number must do so once a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan import draws_inside, host_resources, random_ops, rewrites
from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph
from estimator2strategy.engine.plan.rewrites import Rewrite
from estimator2strategy.engine.plan.xla_kernels import sum_in_double
from estimator2strategy.engine.replay.random_streams import GivenStreams, RandomStreams

HandleOf = Callable[[str], tf.Tensor]

# A value, or a function that makes it when something needs it.
Supplied: TypeAlias = tf.Tensor | Callable[[], tf.Tensor]


class GraphImporter:
    """One replay of a recorded graph, in the graph that is current when it is made.

    Args:
        recorded: The nodes.
        handle_of: Gives the resource handle that stands for a resource-creating node.
        feeds: Values that replace tensors of the recorded graph, by tensor name.
        rewrite: Changes nodes as they are imported; see `plan.rewrites`.
        making: Resource-creating nodes to import all the same, because this replay makes them.
        name: Scope of the imported nodes.
        streams: Where seeded random ops go on in their streams. None: they are imported as they
            are, and begin anew in each function.
        draw: Under XLA, the function to call in place of a seeded random op; see `draw_functions`.
            None: a stateless op of TensorFlow's draws.
        draw_inside: The same for one in a branch or a loop. None: it is imported as it is.
        found: Tells how a function finds a resource of the host; None if it has to be given it.
        packed: Variables whose handles come out of a tensor of several.
        in_double: Sums of float32 numbers that are taken in float64.
    """

    def __init__(
        self,
        recorded: RecordedGraph,
        handle_of: HandleOf,
        feeds: Mapping[str, tf.Tensor] | None = None,
        rewrite: Rewrite | None = None,
        making: Collection[str] = (),
        name: str = "replay",
        streams: RandomStreams | GivenStreams | None = None,
        draw: Callable[[NodeDef, tf.TensorShape], Any] | None = None,
        draw_inside: draws_inside.Draw | None = None,
        found: Callable[[str], host_resources.Found | None] = lambda node: None,
        packed: Collection[str] = (),
        in_double: Collection[str] = (),
    ):
        recorded.refresh()
        self._recorded = recorded
        self._handle_of = handle_of
        self._rewrite = rewrite
        self._making = making
        self._streams = streams
        self._draw, self._draw_inside = draw, draw_inside
        self._found = found
        self._packed = frozenset(packed)
        self._in_double = frozenset(in_double)
        self._graph = tf.compat.v1.get_default_graph()
        self._prefix = self._graph.unique_name(name)
        # By recorded name: TensorFlow gives "a" another name if it is imported after "a/b".
        self._imported: dict[str, tf.Operation] = {}
        self._supplied: dict[str, Supplied] = dict(feeds or {})
        # Ops that need not run because their outputs were supplied, each with a tensor that is
        # ready when they have "run", for control edges.
        self._done = {input_node(name): value for name, value in (feeds or {}).items()}
        self._fed = frozenset(self._done)
        self._writers: list[str] = []

    def supply(
        self, values: Mapping[str, Supplied], ops: Iterable[str], after: Sequence[tf.Tensor]
    ) -> None:
        """Replaces tensors by `values`; `ops` count as run once the tensors `after` are there."""
        with tf.control_dependencies(after):
            done = tf.constant(0)
        self._supplied.update(values)
        self._done.update(dict.fromkeys([*map(input_node, values), *ops], done))

    def wait_with_variables(self, op: str) -> None:
        """Makes nodes that touch a variable, from now on, wait until the supplied `op` has run.

        One handle orders the uses of a variable otherwise. But a TPU program is given a handle
        for the copies of all replicas, and the host that of the first copy.
        """
        self._writers.append(f"^{op}")

    def fetch(self, tensors: Sequence[str], ops: Iterable[str] = ()) -> list[tf.Tensor]:
        """Runs `ops` and returns the values of `tensors`, given by name."""
        wanted = [input_node(name) for name in tensors if name not in self._supplied]
        wanted += [name for name in ops if name not in self._done]
        self._import(self._recorded.ancestors(wanted, self._is_there))
        return [self._value(name) for name in tensors]

    def _is_there(self, edge: str) -> bool:
        if input_node(edge) in self._imported:
            return True
        return edge[1:] in self._done if edge[0] == "^" else tensor_name(edge) in self._supplied

    def _value(self, name: str) -> tf.Tensor:
        if name in self._supplied:
            value = self._supplied[name]
            if callable(value):
                value = self._supplied[name] = value()
            return _tf_private.capture(value)
        node = input_node(name)
        if node in self._imported:
            return self._imported[node].outputs[int(name.rpartition(":")[2])]
        return _tf_private.capture(self._handle_of(node))

    def _import(self, names: Sequence[str]) -> None:
        recorded, fresh = self._recorded, self._fresh(names)
        if not fresh:
            return
        changed = self._register_functions(fresh)
        inside = set(fresh)
        waiting, takers = recorded.writers_without_input(fresh, self._fed)
        graph_def = tf.compat.v1.GraphDef(versions=recorded.versions)
        outside: dict[str, tf.Tensor] = {}
        drawn: dict[str, random_ops.Drawn] = {}
        unseen: dict[str, set[str]] = {}
        for name in fresh:
            node = graph_def.node.add()
            self._copy(node, name, changed)
            if host_resources.is_cond(node) and recorded.touches_variable(name):
                unseen[name] = self._find_inside(node, changed)
            if name in waiting:
                node.input.extend(f"^{taker}" for taker in takers)
            if self._writers and recorded.touches_variable(name):
                node.input.extend(w for w in self._writers if w not in node.input)
            self._connect(node, inside, outside)
            rewrites.copy_summand(graph_def.node, node)
            if self._streams and (asked := self._drawn(node)):
                drawn[name] = asked
            if self._draw_inside:
                outside.update(self._streams_for(node, changed, self._draw_inside))
            if recorded.is_read(name) and input_node(recorded[name].input[0]) in self._packed:
                rewrites.say_shape(graph_def, node, recorded.shape(f"{name}:0"))
            if name in self._in_double:
                sum_in_double(graph_def, node)
        host_resources.keep_order(graph_def.node, unseen)
        if self._streams and drawn:
            outside.update(self._streams.supplied(drawn))
        made = tf.graph_util.import_graph_def(
            graph_def, input_map=outside, return_elements=fresh, name=f"{self._prefix}/"
        )
        self._imported.update(zip(fresh, made, strict=True))
        self._let_meet(fresh, changed)
        self._advance(drawn, [taker for taker in takers if taker in inside])

    def _fresh(self, names: Sequence[str]) -> list[str]:
        """Those of `names` to import now, in the order of their effects."""
        recorded = self._recorded
        fresh = [
            name
            for name in names
            if name not in self._imported
            and (name in self._making or not recorded.creates_resource(name))
        ]
        return recorded.in_order_of_effects(fresh)

    def _copy(self, node: NodeDef, name: str, changed: Mapping[str, Any]) -> None:
        """Fills `node` with a recorded one, rewritten."""
        node.CopyFrom(self._recorded[name])
        node.device = self._recorded.host_of(name)
        node.attr.pop("_class", None)  # colocation with nodes that may not be here
        if self._rewrite:
            self._rewrite.node(node)
        if changed:
            rewrites.rename_calls(node, changed)

    def _drawn(self, node: NodeDef) -> random_ops.Drawn | None:
        """Lets a seeded random op draw from its stream; returns what it asks for, if it is one."""
        if self._draw and random_ops.is_drawn_in_xla(node):
            shape = self._recorded.shape(f"{node.name}:0")
            return random_ops.make_call(node, self._draw(node, shape))
        return random_ops.make_stateless(node) if random_ops.is_seeded(node) else None

    def _streams_for(
        self, node: NodeDef, changed: Mapping[str, Any], draw: draws_inside.Draw
    ) -> dict[str, tf.Tensor]:
        """Lets random ops in a node's functions draw from a variable; returns it, by its edge.

        Args:
            node: Changed in place.
            changed: The functions that a rewrite has changed, by their old names.
            draw: The function to call in place of each op.
        """
        library = self._recorded.library | {f.signature.name: f for f in changed.values()}
        given = draws_inside.give_streams(node, library, draw)
        if given is None:
            return {}
        for function in given.functions:
            _tf_private.register_function(function)
        assert isinstance(self._streams, RandomStreams)
        return {given.edge: _tf_private.capture(self._streams.block(given.seeds).handle)}

    def _advance(self, drawn: Mapping[str, random_ops.Drawn], takers: Sequence[str]) -> None:
        """Moves on the streams of ops that were just imported, once `takers` have a batch."""
        if self._streams and drawn:
            # A step that finds no input has drawn nothing.
            with tf.control_dependencies([self._value(f"{taker}:0") for taker in takers]):
                results = {name: self._value(f"{name}:0") for name in drawn}
                for name, result in results.items():  # that of a call has none
                    result.set_shape(self._recorded.shape(f"{name}:0"))
                self._streams.advance(drawn, results)

    def _register_functions(self, nodes: Sequence[str]) -> Mapping[str, Any]:
        """Makes the functions behind `nodes` callable; returns those that are rewritten."""
        library = self._recorded.library
        names = list(self._recorded.functions_behind(nodes))
        changed = rewrites.functions(library, names, self._rewrite) if self._rewrite else {}
        for name in names:
            _tf_private.register_function(changed.get(name, library[name]))
        return changed

    def _let_meet(self, nodes: Sequence[str], changed: Mapping[str, Any]) -> None:
        """Lets calls of functions in which replicas meet run in any order.

        A function that is traced makes a call with effects wait for the one before: a replica in a
        branch would wait there for another, whose branch begins when that one has ended.
        """
        meeting = {name for name, function in changed.items() if rewrites.meets(function)}
        for name in nodes if meeting else ():
            op = self._imported[name]
            # A call that is given a resource waits for those that are given the same one.
            if not any(tensor.dtype == tf.resource for tensor in op.inputs) and meeting & set(
                self._recorded.functions_behind([name])
            ):
                _tf_private.run_in_any_order(op)

    def _find_inside(self, node: NodeDef, changed: Mapping[str, Any]) -> set[str]:
        """Makes the branches of a replica's cond find the host's resources; returns the resources.

        Args:
            node: The cond; changed in place.
            changed: The functions that a rewrite has changed, by their old names.
        """
        edges = [edge for edge in node.input if not edge.startswith("^")]
        known = {edge: known for edge in edges if (known := self._found(input_node(edge)))}
        library = self._recorded.library | {f.signature.name: f for f in changed.values()}
        for function in host_resources.find_inside(node, known, library):
            _tf_private.register_function(function)
        return set(map(input_node, known))

    def _connect(self, node: NodeDef, inside: set[str], outside: dict[str, tf.Tensor]) -> None:
        """Notes in `outside` the values of edges that start outside this import."""
        edges = list(node.input)
        waited_for: set[tf.Operation] = set()
        for i in reversed(range(len(edges))):
            edge, source = edges[i], input_node(edges[i])
            if edge[0] != "^":
                name = tensor_name(edge)
                if name not in outside and (source not in inside or name in self._supplied):
                    outside[name] = self._value(name)
            elif source not in inside:
                ready = self._ready(source)
                # TensorFlow imports no two control edges from one op.
                if ready is None or ready.op in waited_for:
                    del node.input[i]
                else:
                    outside[edge] = ready
                    waited_for.add(ready.op)

    def _ready(self, node: str) -> tf.Tensor | None:
        """A tensor that is there once `node`, which is not part of this import, has run."""
        if node in self._imported and node not in self._done:
            with tf.control_dependencies([self._imported[node]]):
                self._done[node] = tf.constant(0)
        if node in self._done:
            return _tf_private.capture(self._done[node])
        return None  # a resource, made long ago: nothing to wait for
