"""A loop of steps in which XLA compiles the parts between the host's ops.

    host:      next batch, random numbers    py_func            summaries
    program:                        forward          backward

The host keeps three kinds of ops: those for which XLA has no kernel, the program's checks, which
XLA would leave out, and random ops, because XLA would draw other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from estimator2strategy.engine.plan import random_ops, segments
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.segments import Segment
from estimator2strategy.engine.plan.wide_sums import long_sums
from estimator2strategy.engine.plan.xla_kernels import checks, why_not_compiled
from estimator2strategy.engine.replay.engines.loop import Loop
from estimator2strategy.engine.replay.engines.step import Engine, Request, Step
from estimator2strategy.engine.replay.failed_op import named_ops
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.step_context import StepContext
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import UnsupportedError


def on_host(recorded: RecordedGraph, name: str) -> bool:
    """True if the host runs that node of a compiled step."""
    nodes = recorded.with_functions([name])
    return any(why_not_compiled(n) or checks(n) or random_ops.draws(n) for n in nodes)


class JitLoop(Loop):
    """Runs a block of steps, parts of which XLA compiled. Must be made in the `modern_world`.

    Args:
        replay: The graph and its state.
        step: The definition of a step.
        request: The fetches to run; without feeds.
        programs: The compiled parts of a step.

    Attributes:
        programs: As above.
    """

    def __init__(self, replay: Replay, step: Step, request: Request, programs: Sequence[Program]):
        self.programs = programs
        super().__init__(replay, step, request, self._trace_compiled)
        # Another request may call these programs after they were given other state.
        self.functions += tuple(program.function for program in programs)

    def _trace_compiled(
        self,
        tensors: Sequence[str],
        ops: Sequence[str],
        feeds: Mapping[str, tf.Tensor],
        context: StepContext,
    ) -> list[tf.Tensor]:
        """Traces a step as `Replay.trace` does: the programs, then the rest."""
        del context  # there are no splices
        replay = self._replay
        importer = replay.importer(feeds)
        behind = _behind(replay.recorded, self._request)
        takers = sorted(name for name in behind if replay.recorded.takes_batch(name))
        for program in self.programs:
            program.call(importer, behind, [f"{name}:0" for name in takers])
        return importer.fetch(tensors, ops)


def build(replay: Replay, step: Step, request: Request, others: Sequence[Engine]) -> JitLoop | None:
    """Makes the engine of a request; None if it has feeds. See `engine_for`.

    Raises:
        UnsupportedError: XLA cannot compile the step, or it runs on several devices.
    """
    if request.feeds:
        return None
    if replay.splices or replay.state.num_replicas > 1:
        raise UnsupportedError("jit_compile is for one device; these steps run on several.")
    parts = _parts(replay.recorded, request)
    made = [engine.programs for engine in others if isinstance(engine, JitLoop)]
    serving = (programs for programs in made if _serve(replay.recorded, request, programs, parts))
    programs = next(serving, None) or tuple(Program(replay, part) for part in parts)
    return JitLoop(replay, step, request, programs)


class Program:
    """A part of a step, compiled.

    Must be made in the `modern_world`.

    Args:
        replay: The graph and its state.
        segment: The part.

    Raises:
        UnsupportedError: XLA cannot compile it; the message says why, with the user's line.
    """

    def __init__(self, replay: Replay, segment: Segment):
        self.segment = segment
        graph = replay.recorded.graph
        specs = [replay.spec(name) for name in segment.takes]
        _check_shapes(graph, segment.takes, specs)

        @tf.function(autograph=False, jit_compile=True, input_signature=specs)
        def program(*taken: tf.Tensor) -> list[tf.Tensor]:
            importer = GraphImporter(
                replay.recorded,
                replay.state.handle,
                feeds=dict(zip(segment.takes, taken, strict=True)),
                rewrite=replay.rewrite,
                in_double=long_sums(replay.recorded),
            )
            importer.supply({}, segment.done, [])
            return [*importer.fetch(segment.gives, segment.ops), tf.constant(0)]

        try:
            with tf.init_scope():
                # Runs nothing, and finds whatever has no program.
                program.experimental_get_compiler_ir(*specs)(stage="hlo")
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise _not_compiled(replay.recorded, error) from error
        self.function = program.get_concrete_function()

    def call(self, importer: GraphImporter, behind: frozenset[str], batch: Sequence[str]) -> None:
        """Calls the program in the function that is being traced.

        Args:
            importer: Replays what the host does.
            behind: All nodes that the step needs.
            batch: Names of tensors of the batch: a step that finds none changes nothing.
        """
        segment = self.segment
        taken = importer.fetch(segment.takes, sorted(segment.done & behind))
        awaited = [name for name in batch if input_node(name) in segment.done]
        with tf.control_dependencies(importer.fetch(awaited)):
            *given, finished = self.function(*taken)
        values = dict(zip(segment.gives, given, strict=True))
        importer.supply(values, segment.ops, [finished])


def _serve(
    recorded: RecordedGraph,
    request: Request,
    programs: Sequence[Program],
    parts: Sequence[Segment],
) -> bool:
    """True if programs that were made for more fetches (a summary, say) serve this request too."""
    behind = _behind(recorded, request)
    inside = {name for program in programs for name in program.segment.ops}
    given = {name for program in programs for name in program.segment.takes}
    return bool(
        programs
        and not recorded.have_effects(inside - behind)
        and behind.issuperset(map(input_node, given))
        and inside.issuperset(name for part in parts for name in part.ops)
    )


def _parts(recorded: RecordedGraph, request: Request) -> list[Segment]:
    return segments.compiled(
        recorded, request.tensors, request.ops, lambda name: on_host(recorded, name)
    )


def _behind(recorded: RecordedGraph, request: Request) -> frozenset[str]:
    return frozenset(recorded.ancestors([*map(input_node, request.tensors), *request.ops]))


def _check_shapes(graph: tf.Graph, names: Sequence[str], specs: Sequence[tf.TensorSpec]) -> None:
    """Refuses tensors of unknown shape, which no XLA program can take.

    Args:
        graph: The recorded graph.
        names: Names of the tensors that the program takes.
        specs: The shape and dtype of each.

    Raises:
        UnsupportedError: The shape of one is not known.
    """
    for name, spec in zip(names, specs, strict=True):
        if not spec.shape.is_fully_defined():
            line = user_line(graph.get_tensor_by_name(name).op.traceback)
            raise UnsupportedError(
                f"XLA wants batches of one shape, and there is a {spec.dtype.name} of shape "
                f"{spec.shape} ({line}): say batch(..., drop_remainder=True), or call set_shape."
            )


def _not_compiled(recorded: RecordedGraph, error: Exception) -> UnsupportedError:
    """The error to raise where XLA could not compile nodes of the recorded graph."""
    lines = [f"  {line}" for line in named_ops(recorded, str(error))]
    why = "\n".join(lines) or f"  {str(error)[:500]}"
    return UnsupportedError(
        f"XLA cannot compile the training step:\n{why}\n"
        "  Move such ops into input_fn's Dataset.map, or leave out jit_compile=."
    )
