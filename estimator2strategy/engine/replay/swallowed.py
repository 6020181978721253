"""Failures of which a program that XLA compiled says nothing, as flags that it returns.

    found = swallowed(recorded, nodes)
    flags = raised(recorded, importer.fetch, found)     # in the program: a bool for each
    [told(recorded, failure) for failure, flag in zip(found, flags) if flag]

A kernel for CPUs refuses an id beyond its table; XLA takes another row. It leaves out checks of the
program. Ops inside functions are not watched, but for the assertion that `tf.Assert` puts there.
A `Watch` keeps the flags of a block until its end.

It says nothing of some seeds either. A seeded op of the step draws what a Session would have drawn,
in a branch or a loop, too. One of another kind, or in a function that cannot be given its place
(`plan/draws_inside.py`), has a generator that its kernel keeps, and a compiled program has no
kernels: XLA gives it numbers of its own (`warn_of_lost_seeds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan import draws_inside
from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph
from estimator2strategy.engine.plan.rewrites import has_seed
from estimator2strategy.engine.user_code import user_line

# Values of tensors, by name.
Fetch: TypeAlias = Callable[[Sequence[str]], list[tf.Tensor]]
_told: set[str] = set()


class Failure(NamedTuple):
    """A failure that XLA would not report.

    Attributes:
        node: Name of the recorded node.
        why: The end of "<op> <name>: ...".
    """

    node: str
    why: str


class _Inputs:
    """The inputs of a node, by the names that its op gives them."""

    def __init__(self, recorded: RecordedGraph, name: str, fetch: Fetch):
        self._recorded, self._fetch = recorded, fetch
        self._edges = _edges(recorded, name)

    def __getitem__(self, name: str) -> tf.Tensor:
        return self._fetch([tensor_name(self._edges[name])])[0]

    def shape(self, name: str) -> Any:
        """The shape of a tensor, or of the variable behind a resource."""
        node = self._recorded[input_node(self._edges[name])]
        if node.op == "VarHandleOp":
            return tf.constant([dim.size for dim in node.attr["shape"].shape.dim])
        return tf.shape(self[name])


Raised: TypeAlias = Callable[[_Inputs], tf.Tensor]


class _Row(NamedTuple):
    why: str
    raised: Raised


def swallowed(recorded: RecordedGraph, names: Iterable[str]) -> list[Failure]:
    """The failures of the nodes `names` that XLA would not report."""
    losses = []
    for name in names:
        node = recorded[name]
        if node.op in _ROWS and _is_known(recorded, node):
            losses.append(Failure(name, _ROWS[node.op].why))
        elif _guarded(recorded, node) is not None:
            losses.append(Failure(name, _ROWS["Assert"].why))
    return losses


def raised(recorded: RecordedGraph, fetch: Fetch, found: Sequence[Failure]) -> tf.Tensor:
    """A bool for each failure of `found`: True if it happened. Called where the nodes are traced.

    Args:
        fetch: `GraphImporter.fetch`.
    """
    return tf.stack([_raised(recorded, fetch, failure.node) for failure in found])


def told(recorded: RecordedGraph, failure: Failure) -> str:
    """The message of a failure: op, name and the user's line."""
    op = recorded.graph.get_operation_by_name(failure.node)
    return f"{op.type} {op.name!r}, made at {user_line(op.traceback)}: {failure.why}"


def _raised(recorded: RecordedGraph, fetch: Fetch, name: str) -> tf.Tensor:
    node = recorded[name]
    condition = _guarded(recorded, node)
    if condition is not None:
        return ~fetch([condition])[0]
    return _ROWS[node.op].raised(_Inputs(recorded, name, fetch))


def _edges(recorded: RecordedGraph, name: str) -> dict[str, str]:
    """Name of an input -> its edge. A list of inputs must come last."""
    arguments = recorded.graph.get_operation_by_name(name).op_def.input_arg
    return {arg.name: edge for arg, edge in zip(arguments, recorded[name].input, strict=False)}


def _is_known(recorded: RecordedGraph, node: NodeDef) -> bool:
    """True if the size of the node's table is: it is a tensor, or a variable of known shape."""
    arguments = recorded.graph.get_operation_by_name(node.name).op_def.input_arg
    edges = _edges(recorded, node.name)
    resources = [arg.name for arg in arguments if arg.type == tf.resource.as_datatype_enum]
    makers = [recorded[input_node(edges[name])] for name in resources]
    return all(m.op == "VarHandleOp" and m.attr["shape"].shape.dim for m in makers)


def _guarded(recorded: RecordedGraph, node: NodeDef) -> str | None:
    """The tensor that decides if the assertion in a branch of a cond fails; None if there is none.

    `tf.Assert` looks at its condition first, and puts the assertion into the branch of a false one.
    """
    if node.op not in ("If", "StatelessIf"):
        return None
    branch = recorded.library[node.attr["else_branch"].func.name]
    asserted = [inner for inner in branch.node_def if inner.op == "Assert"]
    arguments = [arg.name for arg in branch.signature.input_arg]
    for inner in asserted:
        if inner.input[0] in arguments:
            edge = node.input[1 + arguments.index(inner.input[0])]
            if edge == node.input[0]:
                return tensor_name(edge)
    return None


def _beyond(ids: tf.Tensor, sizes: Any) -> tf.Tensor:
    return tf.reduce_any((ids < 0) | (ids >= tf.cast(sizes, ids.dtype)))


def _rows_of(table: str, ids: str = "indices") -> Raised:
    return lambda inputs: _beyond(inputs[ids], inputs.shape(table)[0])


def _along_axis(inputs: _Inputs) -> tf.Tensor:
    return _beyond(inputs["indices"], tf.gather(inputs.shape("params"), inputs["axis"]))


def _points_of(table: str) -> Raised:
    def beyond(inputs: _Inputs) -> tf.Tensor:
        indices = inputs["indices"]
        return _beyond(indices, inputs.shape(table)[: indices.shape[-1]])

    return beyond


def _points_of_shape(inputs: _Inputs) -> tf.Tensor:
    indices = inputs["indices"]
    return _beyond(indices, inputs["shape"][: indices.shape[-1]])


def _labels(inputs: _Inputs) -> tf.Tensor:
    return _beyond(inputs["labels"], inputs.shape("features")[-1])


def _segments(inputs: _Inputs) -> tf.Tensor:
    ids = inputs["segment_ids"]  # the kernel for CPUs drops negative ones
    return tf.reduce_any(ids >= tf.cast(inputs["num_segments"], ids.dtype))


def _false(inputs: _Inputs) -> tf.Tensor:
    return ~inputs["condition"]


def _not_finite(inputs: _Inputs) -> tf.Tensor:
    return ~tf.reduce_all(tf.math.is_finite(inputs["tensor"]))


def _all(ops: str, why: str, raised: Raised) -> Mapping[str, _Row]:
    return dict.fromkeys(ops.split(), _Row(why, raised))


_BEYOND_TABLE = "an id is beyond the table"
_ROWS: Mapping[str, _Row] = {
    **_all("GatherV2", _BEYOND_TABLE, _along_axis),
    **_all("Gather", _BEYOND_TABLE, _rows_of("params")),
    **_all("ResourceGather", _BEYOND_TABLE, _rows_of("resource")),
    **_all("GatherNd", _BEYOND_TABLE, _points_of("params")),
    **_all(
        "ResourceScatterUpdate ResourceScatterAdd ResourceScatterSub ResourceScatterMul "
        "ResourceScatterDiv ResourceScatterMin ResourceScatterMax",
        _BEYOND_TABLE,
        _rows_of("resource"),
    ),
    **_all(
        "ResourceScatterNdUpdate ResourceScatterNdAdd ResourceScatterNdSub",
        _BEYOND_TABLE,
        _points_of("ref"),
    ),
    **_all(
        "TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMin TensorScatterMax",
        _BEYOND_TABLE,
        _points_of("tensor"),
    ),
    **_all("ScatterNd", _BEYOND_TABLE, _points_of_shape),
    **_all("SparseSoftmaxCrossEntropyWithLogits", "a label is beyond the classes", _labels),
    **_all(
        "UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMin UnsortedSegmentMax",
        "a segment id is beyond the segments",
        _segments,
    ),
    **_all("Assert", "the assertion fails", _false),
    **_all("CheckNumerics", "a number is infinite or NaN", _not_finite),
}


class Watch:
    """The failures that steps may swallow, and the flags of launches that nobody has read yet.

    Args:
        recorded: The graph.
        failures: Those to watch for; a launch's last output has a flag for each of them. Without
            any it has no such output.
    """

    def __init__(self, recorded: RecordedGraph, failures: Sequence[Failure]):
        self.failures = tuple(failures)
        self._recorded = recorded
        self._flags: list[Any] = []

    def without_flags(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs of a launch but for the flags, which are kept."""
        if not self.failures:
            return outputs
        *outputs, flags = outputs
        self._flags.append(flags)
        return outputs

    def tell(self) -> None:
        """Waits for all launches.

        Raises:
            InvalidArgumentError: A step has failed; it names the op and the user's line.
        """
        flags, self._flags = self._flags, []
        count = len(self.failures)
        if not flags:
            return
        of_steps = [np.asarray(of_launch).reshape(-1, count) for of_launch in flags]
        happened = np.concatenate(of_steps).any(axis=0)
        failures = [self.failures[number] for number in np.flatnonzero(happened)]
        if failures:
            messages = [told(self._recorded, failure) for failure in failures]
            raise tf.errors.InvalidArgumentError(None, None, "\n".join(messages))


def lost_seeds(recorded: RecordedGraph, names: Iterable[str]) -> dict[str, str]:
    """The user's line that made a node -> the random op that it is, or that is inside it."""
    seeds: dict[str, str] = {}
    for name in names:
        functions = recorded.functions_behind([name])
        others = draws_inside.out_of_reach(recorded[name], recorded.library, functions)
        inside = [node.op for node in others if has_seed(node)]
        if inside:
            line = user_line(recorded.graph.get_operation_by_name(name).traceback)
            seeds.setdefault(line, inside[0])
    return seeds


def warn_of_lost_seeds(recorded: RecordedGraph, names: Iterable[str]) -> None:
    """Warns of each line once in a process."""
    for line, op in lost_seeds(recorded, names).items():
        if line not in _told:
            _told.add(line)
            tf.compat.v1.logging.warning(
                "Under JAX the seed of %s has no effect (%s): XLA draws other numbers. Use "
                "tf.random.stateless_uniform and its kin.",
                op,
                line,
            )
