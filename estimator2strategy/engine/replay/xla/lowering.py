"""Makes XLA's program of a core's step, and compiles it for the CPU.

    module = lower(program)          # HLO for all replicas, sums as all-reduces; for a TPU compiler
    seconds = compile_for_cpu(program)

Nothing is run. Variables get memory that is never touched, and batches are only shapes. So a model
can be compiled that this machine could not train.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import labels_in
from estimator2strategy.engine.plan.rewrites import (
    ALONE_IN_XLA,
    REPLICATED_IN_XLA,
    Rewrite,
    seeding,
)
from estimator2strategy.engine.replay.draw_functions import draw_function, draw_inside, drawing
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.random_streams import RandomStreams
from estimator2strategy.engine.replay.swallowed import Failure, raised
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.worlds import modern_world

_SCOPE = "step"


class LoweringError(Exception):
    """XLA does not take the program.

    Attributes:
        text: TensorFlow's message.
        nodes: The recorded nodes that it names.
    """

    def __init__(self, text: str, nodes: tuple[str, ...]):
        self.text = text
        self.nodes = nodes
        super().__init__(text)


@dataclasses.dataclass(frozen=True)
class LoweredStep:
    """XLA's program of a core's step.

    Attributes:
        program: The part of the recorded graph that it is.
        module: A serialised HloModuleProto. Its parameters are the feeds, the variables and the
            streams; its results the outputs, then the variables and streams that a step changes.
        streams: The places of the seeded random ops in their streams; see `RandomStreams.blocks`.
    """

    program: CoreProgram
    module: bytes
    streams: tuple[tf.Variable, ...]

    @property
    def changed(self) -> dict[int, int]:
        """Number of a result that is a variable's new value -> number of its parameter."""
        entries = _tf_private.HloModule.FromString(self.module).input_output_alias.entries
        return {entry.output_shape_index[0]: entry.parameter_number for entry in entries}


def lower(program: CoreProgram) -> bytes:
    """A serialised HloModuleProto of one core's step, in which `program.replicas` cores meet.

    Its parameters are the feeds, then the variables, in the order of `program`. Its results are
    the outputs, then the variables that the step has changed; each shares the memory of its
    parameter (`input_output_alias`).

    Raises:
        LoweringError: TensorFlow cannot turn it into a program of XLA.
    """
    return _compiler_ir(program, _rewrite(program), "hlo_serialized").module


def lower_step(
    program: CoreProgram,
    streams: RandomStreams,
    specs: Sequence[tf.TensorSpec] | None = None,
    watched: Sequence[Failure] = (),
) -> LoweredStep:
    """The same program, whose random ops draw from `streams`; those without a seed are given one.

    Args:
        program: The step.
        streams: The places of its random ops.
        specs: Shape and dtype of each feed, where the recorded ones are not whole.
        watched: Failures that XLA does not report: the step returns flags for them behind its
            outputs.

    Raises:
        LoweringError: TensorFlow cannot turn it into a program of XLA.
    """
    rewrite = drawing(seeding(_rewrite(program)))
    return _compiler_ir(program, rewrite, "hlo_serialized", streams, specs, watched)


def compile_for_cpu(program: CoreProgram) -> float:
    """Compiles one core's step for the CPU, where it has nobody to meet; returns the seconds.

    Raises:
        LoweringError: XLA refuses it.
    """
    started = time.monotonic()
    _compiler_ir(program, ALONE_IN_XLA, "optimized_hlo_serialized")
    return time.monotonic() - started


def _rewrite(program: CoreProgram) -> Rewrite:
    return REPLICATED_IN_XLA if program.replicas > 1 else ALONE_IN_XLA


def _compiler_ir(
    program: CoreProgram,
    rewrite: Rewrite,
    stage: str,
    streams: RandomStreams | None = None,
    specs: Sequence[tf.TensorSpec] | None = None,
    watched: Sequence[Failure] = (),
) -> LoweredStep:
    recorded = program.recorded
    specs = specs or [program.spec(name) for name in program.feeds]
    variables: dict[str, tf.Variable] = {}
    with modern_world():

        def step(*batch: tf.Tensor) -> list[tf.Tensor]:
            for node in program.variables:
                _tf_private.capture(variables[node].handle)  # parameters in this order
            importer = GraphImporter(
                recorded,
                lambda node: variables[node].handle,
                feeds=dict(zip(program.feeds, batch, strict=True)),
                rewrite=rewrite,
                name=_SCOPE,
                streams=streams,
                draw=draw_function if streams else None,
                draw_inside=draw_inside if streams else None,
            )
            importer.supply({}, program.done, [])
            results = importer.fetch(program.outputs, program.ops)
            return [*results, raised(recorded, importer.fetch, watched)] if watched else results

        try:
            variables.update((node, _variable(program, node)) for node in program.variables)
            compiled = tf.function(step, specs, autograph=False, jit_compile=True)
            text: bytes = compiled.experimental_get_compiler_ir(*specs)(stage=stage)
            captured = compiled.get_concrete_function().captured_inputs[len(variables) :]
        except (ValueError, tf.errors.OpError) as error:
            said = str(error)
            raise LoweringError(said, _recorded_nodes(program, said)) from error
    places = {id(block.handle): block for block in streams.blocks()} if streams else {}
    return LoweredStep(program, text, tuple(places[id(handle)] for handle in captured))


def _variable(program: CoreProgram, node: str) -> tf.Variable:
    """A variable that has a value, as XLA wants, in memory that nobody has written to."""
    attr = program.recorded[node].attr
    shape, dtype = tf.TensorShape(attr["shape"].shape), tf.as_dtype(attr["dtype"].type)
    variable = _tf_private.UninitializedVariable(shape=shape, dtype=dtype)
    variable.assign(tf.raw_ops.Empty(shape=shape.as_list(), dtype=dtype, init=False))
    return variable


def _recorded_nodes(program: CoreProgram, text: str) -> tuple[str, ...]:
    nodes = (recorded_node(program, label) for label in labels_in(text))
    return tuple(dict.fromkeys(node for node in nodes if node))


def recorded_node(program: CoreProgram, name: str) -> str:
    """The recorded node that the op `name` of a compiled program comes from; "" if from none.

    A node of XLA's is named after the way to it: `step/while/body/MatMul`.
    """
    name = name.removeprefix(f"{_SCOPE}/")
    while name and name not in program.recorded.position:
        name = name.rpartition("/")[0]
    return name
