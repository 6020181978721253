"""What lies between the host's ops in a step, as XLA programs.

    host:      draw, random numbers          py_func            summaries
    program:                        forward          backward

The host keeps what XLA has no kernel for, the program's checks, which XLA would leave out, and the
random numbers: XLA would draw others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan import random_ops, segments
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.segments import Segment
from estimator2strategy.engine.plan.xla_kernels import checks, why_not_compiled
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import UnsupportedError

# How errors spell the nodes that a GraphImporter has imported.
_NAMED = re.compile(r"\{\{node (?:[^}]*/)?replay(?:_\d+)?/([^}]+)\}\}")


def on_host(recorded: RecordedGraph, name: str) -> bool:
    """Whether the host runs a node of a compiled step."""
    nodes = recorded.with_functions([name])
    return any(why_not_compiled(n) or checks(n) or random_ops.draws(n) for n in nodes)


class Program:
    """A part of a step, compiled.

    Must be made in the `modern_world`.

    Args:
        session: The ReplaySession that runs the steps.
        segment: The part.

    Raises:
        UnsupportedError: XLA cannot compile it; the message says why, with the user's line.
    """

    def __init__(self, session: Any, segment: Segment):
        self.segment = segment
        specs = [session.spec(name) for name in segment.takes]
        _check_shapes(session, segment.takes, specs)

        @tf.function(autograph=False, jit_compile=True, input_signature=specs)
        def program(*taken: tf.Tensor) -> list[tf.Tensor]:
            importer = GraphImporter(
                session.recorded,
                session.state.handle,
                feeds=dict(zip(segment.takes, taken, strict=True)),
                rewrite=session.rewrite,
            )
            importer.supply({}, segment.done, [])
            return [*importer.fetch(segment.gives, segment.ops), tf.constant(0)]

        try:
            with tf.init_scope():
                # Runs nothing, and finds whatever has no program.
                program.experimental_get_compiler_ir(*specs)(stage="hlo")
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise _not_compiled(session.graph, error) from error
        self._function = program.get_concrete_function()

    def call(self, importer: GraphImporter, behind: frozenset[str], draws: Sequence[str]) -> None:
        """Runs it in the function that is being traced.

        Args:
            importer: Replays what the host does.
            behind: All nodes that the step needs.
            draws: Those among them that draw the batch: a step that finds none changes nothing.
        """
        segment = self.segment
        taken = importer.fetch(segment.takes, sorted(segment.done & behind))
        drawn = [name for name in draws if input_node(name) in segment.done]
        with tf.control_dependencies(importer.fetch(drawn)):
            *given, finished = self._function(*taken)
        values = dict(zip(segment.gives, given, strict=True))
        importer.supply(values, segment.ops, [finished])


class CompiledSteps:
    """The programs of a session's steps, by what is fetched with them."""

    def __init__(self, session: Any):
        self._session = session
        self._found: dict[tuple, tuple[Program, ...]] = {}

    def clear(self) -> None:
        """Frees them."""
        self._found.clear()

    def of(self, tensors: tuple[str, ...], ops: tuple[str, ...]) -> tuple[Program, ...]:
        """The programs of such a step.

        Raises:
            UnsupportedError: XLA cannot compile it, or it runs on several devices.
        """
        key = (tensors, ops)
        if key not in self._found:
            self._found[key] = self._serving(tensors, ops) or self._made(tensors, ops)
        return self._found[key]

    def _serving(self, tensors: Sequence[str], ops: Sequence[str]) -> tuple[Program, ...]:
        """Programs made for more than this (a summary, say), which need not be made anew."""
        recorded = self._session.recorded
        behind = _behind(recorded, tensors, ops)
        for programs in self._found.values():
            inside = {name for program in programs for name in program.segment.ops}
            given = {name for program in programs for name in program.segment.takes}
            if (
                programs
                and not recorded.have_effects(inside - behind)
                and behind.issuperset(map(input_node, given))
                and inside.issuperset(
                    name for segment in self._cut(tensors, ops) for name in segment.ops
                )
            ):
                return programs
        return ()

    def _made(self, tensors: Sequence[str], ops: Sequence[str]) -> tuple[Program, ...]:
        session = self._session
        if session.splices or session.state.num_replicas > 1:
            raise UnsupportedError("jit_compile is for one device; these steps run on several.")
        session.on_build()
        return tuple(Program(session, segment) for segment in self._cut(tensors, ops))

    def _cut(self, tensors: Sequence[str], ops: Sequence[str]) -> list[Segment]:
        recorded = self._session.recorded
        return segments.compiled(recorded, tensors, ops, lambda name: on_host(recorded, name))


def replay_compiled(
    importer: GraphImporter,
    recorded: RecordedGraph,
    programs: Sequence[Program],
    tensors: Sequence[str],
    ops: Sequence[str],
) -> list[tf.Tensor]:
    """Traces a step with its programs, then what is left of `tensors` and `ops`.

    Returns:
        The tensors.
    """
    behind = _behind(recorded, tensors, ops)
    draws = [f"{name}:0" for name in sorted(behind) if recorded.draws(name)]
    for program in programs:
        program.call(importer, behind, draws)
    return importer.fetch(tensors, ops)


def _behind(recorded: RecordedGraph, tensors: Sequence[str], ops: Sequence[str]) -> frozenset[str]:
    return frozenset(recorded.ancestors([*map(input_node, tensors), *ops]))


def _check_shapes(session: Any, names: Sequence[str], specs: Sequence[tf.TensorSpec]) -> None:
    """Args: names, specs: The tensors that an XLA program is given.

    Raises:
        UnsupportedError: The shape of one is not known.
    """
    for name, spec in zip(names, specs, strict=True):
        if not spec.shape.is_fully_defined():
            line = user_line(session.graph.get_tensor_by_name(name).op.traceback)
            raise UnsupportedError(
                f"XLA wants batches of one shape, and there is a {spec.dtype.name} of shape "
                f"{spec.shape} ({line}): say batch(..., drop_remainder=True), or call set_shape."
            )


def _not_compiled(graph: tf.Graph, error: Exception) -> UnsupportedError:
    """What to raise where XLA could not compile nodes of the recorded `graph`."""
    operations = {op.name: op for op in graph.get_operations()}
    lines = [
        f"  {op.type} {op.name!r}, made at {user_line(op.traceback)}"
        for name in dict.fromkeys(_NAMED.findall(str(error)))
        if (op := operations.get(name))
    ]
    why = "\n".join(lines) or f"  {str(error)[:500]}"
    return UnsupportedError(
        f"XLA cannot compile the training step:\n{why}\n"
        "  Move such ops into input_fn's Dataset.map, or leave out jit_compile=."
    )
