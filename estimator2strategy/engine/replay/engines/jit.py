"""A loop of steps in which XLA compiles the parts between the host's ops.

    host:      next batch                    py_func            summaries
    program:               forward, dropout           backward

The host keeps three kinds of ops: those for which XLA has no kernel, the program's checks, which
XLA would leave out, and random ops. XLA would draw other numbers for them; `xla_draws` gives seeded
ones theirs, so they are compiled, unless XLA needs a loop for it and the host is faster. Where they
are in their streams is kept on the host: a program is given the places, and returns how far they
have moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from estimator2strategy.engine.plan import random_ops, segments
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.segments import Segment
from estimator2strategy.engine.plan.xla_kernels import checks, long_sums, why_not_compiled
from estimator2strategy.engine.replay.draw_functions import draw_function
from estimator2strategy.engine.replay.engines.loop import Loop
from estimator2strategy.engine.replay.engines.step import Engine, Request, Step
from estimator2strategy.engine.replay.failed_op import named_ops
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.random_streams import GivenStreams
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.step_context import StepContext
from estimator2strategy.engine.replay.swallowed import raised, swallowed, told
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import UnsupportedError

# `[place, seed2]` of a random op.
_PLACE = tf.TensorSpec([2], tf.uint64)
# XLA draws for these in a loop: a few times as slowly as a kernel does.
_DRAWN_IN_A_LOOP = frozenset({"TruncatedNormal", "RandomShuffle", "Multinomial"})


def on_host(recorded: RecordedGraph, name: str) -> bool:
    """True if the host runs that node of a compiled step."""
    if _drawn_inside(recorded, name):
        return bool(why_not_compiled(recorded[name]))
    nodes = recorded.with_functions([name])
    return any(why_not_compiled(n) or checks(n) or random_ops.draws(n) for n in nodes)


def _drawn_inside(recorded: RecordedGraph, name: str) -> bool:
    node = recorded[name]
    return random_ops.is_drawn_in_xla(node) and node.op not in _DRAWN_IN_A_LOOP


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
    programs = next(serving, None) or tuple(
        Program(replay, part, step.checks_compiled) for part in parts
    )
    return JitLoop(replay, step, request, programs)


class Program:
    """A part of a step, compiled.

    Must be made in the `modern_world`.

    Args:
        replay: The graph and its state.
        segment: The part.
        checks: True if a step fails where its ops would, had XLA not compiled them.

    Raises:
        UnsupportedError: XLA cannot compile it; the message says why, with the user's line.
    """

    def __init__(self, replay: Replay, segment: Segment, checks: bool = False):
        self.segment = segment
        self._streams = replay.state.random_streams()
        recorded = replay.recorded
        inside = [name for name in segment.ops if _drawn_inside(recorded, name)]
        self._seeds = {name: recorded[name].attr["seed2"].i for name in inside}
        watched = swallowed(recorded, segment.ops) if checks else []
        self._messages = [told(recorded, failure) for failure in watched]
        specs = [replay.spec(name) for name in segment.takes]
        _check_shapes(recorded.graph, segment.takes, specs)
        specs += [_PLACE] * len(inside)

        @tf.function(autograph=False, jit_compile=True, input_signature=specs)
        def program(*taken: tf.Tensor) -> tuple[list[tf.Tensor], ...]:
            feeds = dict(zip(segment.takes, taken, strict=False))
            streams = GivenStreams(dict(zip(inside, taken[len(feeds) :], strict=True)))
            importer = GraphImporter(
                recorded,
                replay.state.handle,
                feeds=feeds,
                rewrite=replay.rewrite,
                streams=streams,
                draw=draw_function,
                in_double=long_sums(replay.recorded),
            )
            importer.supply({}, segment.done, [])
            given = importer.fetch(segment.gives, segment.ops)
            flags = [raised(recorded, importer.fetch, watched)] if watched else []
            return given, [tf.constant(0)], [streams.moved[name] for name in inside], flags

        try:
            with tf.init_scope():
                # Runs nothing, and finds whatever has no program.
                program.experimental_get_compiler_ir(*specs)(stage="hlo")
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise _not_compiled(recorded, error) from error
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
        counters = self._streams.counters(self._seeds)
        awaited = [name for name in batch if input_node(name) in segment.done]
        with tf.control_dependencies(importer.fetch(awaited)):
            given, finished, moved, flags = self.function(*taken, *counters.values())
        for flag in flags:
            first = tf.gather(self._messages, tf.argmax(flag))
            tf.raw_ops.Assert(condition=~tf.reduce_any(flag), data=[first])
        self._streams.move_on(dict(zip(self._seeds, moved, strict=True)))
        values = dict(zip(segment.gives, given, strict=True))
        importer.supply(values, segment.ops, finished)


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
