"""The parts of a step that runs on a device: the host's, the device's, the host's again.

host:    next batch, strings            metrics, host calls, summaries
device:                     the model
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan import segments
from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.xla_kernels import why_not_compiled
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.engines.step import Request
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.step_context import StepContext
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import UnsupportedError


@dataclasses.dataclass(frozen=True)
class StepParts:
    """A step in three parts.

    Attributes:
        program: The device's part.
        takes: Names of the host's tensors that it is given: each replica's feeds, one replica's
            after the other's.
        before: Names of the nodes that the host runs before it.
        kept: Names of tensors of these nodes that the host needs after it, too.
        after: Names of the nodes that the host runs after it.
        splice: The splice that the device's part takes the place of, if it does.
        later: The splices that the host traces after it.
    """

    program: CoreProgram
    takes: tuple[str, ...]
    before: frozenset[str]
    kept: tuple[str, ...]
    after: frozenset[str]
    splice: Splice | None = None
    later: tuple[Splice, ...] = ()

    @property
    def has_effects_after(self) -> bool:
        """True if the host must run its last part at each step, with the results of that step."""
        recorded = self.program.recorded
        return recorded.have_effects(self.after) or recorded.call_python(self.after)

    def given(self, request: Request) -> list[int] | None:
        """The numbers of a request's tensors among the program's outputs, then `kept`.

        None: the host has to compute something of them.
        """
        there = [*self.program.outputs, *self.kept]
        if self.after or self.splice or self.later or not set(there).issuperset(request.tensors):
            return None
        return [there.index(name) for name in request.tensors]

    def shared_variables(self) -> tuple[set[str], set[str]]:
        """(variables that host and device share and one of them writes, those the host writes)."""
        recorded, on_device = self.program.recorded, set(self.program.variables)
        by_host = _touched(recorded, self.before | self.after)
        written_by_host = set(_written(recorded, self.before | self.after))
        written = written_by_host.union(_written(recorded, self.program.nodes))
        return by_host & on_device & written, written_by_host


def parts_of(replay: Replay, request: Request, replicas: int) -> StepParts | None:
    """The parts of a request; None if a device has nothing to do in it.

    Args:
        replicas: The number of devices.

    Raises:
        UnsupportedError: The host would have to act in the middle of the device's part.
    """
    recorded = replay.recorded
    splices = splice_lib.exposing(replay.splices, recorded, request.tensors, request.ops)
    roots = {*map(input_node, request.tensors), *request.ops}
    splices = splice_lib.needed(splices, recorded, roots, fed=set())
    if splices:
        return None if request.feeds else _around_splice(recorded, request, splices, replicas)
    return _around_segment(recorded, request)


def _around_segment(recorded: RecordedGraph, request: Request) -> StepParts | None:
    """Of a model that was recorded for one device."""

    def on_host(name: str) -> bool:
        return any(map(why_not_compiled, recorded.with_functions([name])))

    compiled = segments.compiled(recorded, request.tensors, request.ops, on_host, request.feeds)
    if not compiled:
        return None
    if len(compiled) > 1:
        raise _in_the_middle(recorded, compiled, on_host)
    (segment,) = compiled
    program = CoreProgram(recorded, segment.takes, segment.gives, segment.ops, done=segment.done)
    fed = set(map(input_node, request.feeds))
    roots = [*map(input_node, request.tensors), *request.ops]
    behind = recorded.ancestors(
        (name for name in roots if name not in fed), lambda edge: input_node(edge) in fed
    )
    inside, before = set(segment.ops), segment.done
    after = [name for name in behind if name not in inside and name not in before]
    return _with_kept(StepParts(program, segment.takes, before, (), frozenset()), request, after)


def _around_splice(
    recorded: RecordedGraph, request: Request, splices: Sequence[Splice], replicas: int
) -> StepParts:
    """Of a model that was recorded for the cores of a TPU."""
    splice, *later = splices
    model = splice.model
    if model is None or any(other.model for other in later):
        raise UnsupportedError(
            "Under the runtime of JAX a step is one program, and this one has several. "
            "Leave out --runtime=jax."
        )
    program = CoreProgram(recorded, model.feeds, model.outputs, model.ops, replicas)
    before = recorded.ancestors(map(input_node, splice.inputs))
    used = [*map(input_node, request.tensors), *request.ops]
    for other in later:
        used += [*map(input_node, other.inputs), *other.ops]
    stop = splice.nodes.union(*(other.nodes for other in later))
    behind = recorded.ancestors(
        (name for name in used if name not in stop), lambda edge: input_node(edge) in stop
    )
    parts = StepParts(
        program, splice.inputs, frozenset(before), (), frozenset(), splice, tuple(later)
    )
    return _with_kept(parts, request, [n for n in behind if n not in parts.before])


def _with_kept(parts: StepParts, request: Request, after: Iterable[str]) -> StepParts:
    recorded = parts.program.recorded
    before = frozenset(n for n in parts.before if not recorded.creates_resource(n))
    after = frozenset(n for n in after if not recorded.creates_resource(n))
    edges = (edge for name in after for edge in recorded[name].input if edge[0] != "^")
    wanted = [*map(tensor_name, edges), *request.tensors]
    for splice in parts.later:
        wanted += splice.inputs
    there = before.union(map(input_node, request.feeds))
    kept = dict.fromkeys(name for name in wanted if input_node(name) in there)
    return dataclasses.replace(parts, before=before, after=after, kept=tuple(kept))


def take_function(replay: Replay, parts: StepParts, feeds: Sequence[str]) -> Any:
    """The ConcreteFunction of the host's first part; returns `takes`, then `kept`.

    Must be called in the `modern_world`. It ends with an OutOfRangeError where the input has ended.

    Args:
        feeds: Names of the tensors that it is given.
    """
    names = dict.fromkeys([*parts.takes, *parts.kept])

    def take(*given: tf.Tensor) -> list[tf.Tensor]:
        importer = replay.importer(dict(zip(feeds, given, strict=True)))
        values = dict(zip(names, importer.fetch(list(names), sorted(parts.before)), strict=True))
        return [values[name] for name in (*parts.takes, *parts.kept)]

    specs = [replay.spec(name) for name in feeds]
    return tf.function(take, specs, autograph=False).get_concrete_function()


def after_function(replay: Replay, parts: StepParts, request: Request, replicas: int) -> Any:
    """The ConcreteFunction of the host's last part; returns the tensors of the request.

    Must be called in the `modern_world`. Its arguments are the outputs of the device's part, with a
    first axis for the replicas if there are several; then the tensors that were kept.
    """
    outputs = parts.program.outputs
    front = [replicas] if replicas > 1 else []
    specs = [
        tf.TensorSpec(tf.TensorShape(front).concatenate(spec.shape), spec.dtype)
        for spec in map(replay.spec, outputs)
    ]
    specs += [replay.spec(name) for name in parts.kept]

    def after(*values: tf.Tensor) -> list[tf.Tensor]:
        computed, kept = values[: len(outputs)], values[len(outputs) :]
        importer = replay.importer({})
        importer.supply(dict(zip(parts.kept, kept, strict=True)), parts.before, kept)
        _supply(importer, replay, parts, computed, replicas)
        if parts.later:
            roots = {*map(input_node, request.tensors), *request.ops}
            replay.trace_splices(importer, parts.later, roots, StepContext())
        return importer.fetch(request.tensors, request.ops)

    return tf.function(after, specs, autograph=False).get_concrete_function()


def _supply(
    importer: GraphImporter,
    replay: Replay,
    parts: StepParts,
    computed: Sequence[tf.Tensor],
    replicas: int,
) -> None:
    """Gives the host's last part the outputs of the device's."""
    program, splice = parts.program, parts.splice
    if splice is None:
        for value, name in zip(computed, program.outputs, strict=True):
            value.set_shape(replay.spec(name).shape)
        values = dict(zip(program.outputs, computed, strict=True))
        importer.supply(values, program.ops, computed)
        return
    of_each = []
    for stacked, name in zip(computed, program.outputs, strict=True):
        of_replicas = [stacked] if replicas == 1 else tf.unstack(stacked, replicas)
        for value in of_replicas:
            value.set_shape(replay.spec(name).shape)
        of_each.append(tuple(of_replicas))
    merged = splice.merge(of_each)
    made = [value for value in merged if not callable(value)]
    importer.supply(dict(zip(splice.outputs, merged, strict=True)), [splice.op], made)
    importer.wait_with_variables(splice.op)


def _in_the_middle(
    recorded: RecordedGraph, found: Sequence[segments.Segment], on_host: Callable[[str], bool]
) -> UnsupportedError:
    """The error for ops of the host whose results the device needs, and that need its own."""
    first = set(found[0].ops)
    behind = (recorded.ancestors([name]) for name in found[1].ops)
    middle = {
        name: None
        for names in behind
        for name in names
        if on_host(name) and first.intersection(recorded.ancestors([name]))
    }
    lines = [
        f"  {recorded[name].op} ({user_line(recorded.graph.get_operation_by_name(name).traceback)})"
        for name in list(middle)[:3]
    ]
    return UnsupportedError(
        "Under the runtime of JAX a step is one program, and the host would have to act in the "
        "middle of it:\n"
        + "\n".join(lines)
        + "\n  Move that into input_fn's Dataset.map, or leave out --runtime=jax."
    )


def _touched(recorded: RecordedGraph, names: Iterable[str]) -> set[str]:
    edges = (input_node(edge) for name in names for edge in recorded[name].input)
    return {source for source in edges if recorded[source].op == "VarHandleOp"}


def _written(recorded: RecordedGraph, names: Iterable[str]) -> list[str]:
    return [variable for name in names for variable in recorded.written_by(name)]
