"""A block of steps, exported by JAX."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import export
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from estimator2strategy.engine.replay.xla.block import REPLICAS, block_of, on_mesh
from estimator2strategy.engine.replay.xla.lowering import LoweredStep
from estimator2strategy.engine.replay.xla.step_function import StepFunction
from estimator2strategy.engine.replay.xla.target import Precision

PLATFORMS = ("cpu", "cuda", "tpu")


@dataclasses.dataclass(frozen=True)
class ExportedBlock:
    """A block of steps.

    Attributes:
        serialized: The bytes of `jax.export`: of a function of the variables, the batches and the
            number of steps.
        variables, outputs: Shape and dtype of each in the step of a replica.
    """

    serialized: bytes
    variables: Sequence[Any]
    outputs: Sequence[Any]


def exported_block(lowered: LoweredStep, steps: int, precision: Precision) -> ExportedBlock:
    """Exports a block of `steps` steps for all platforms.

    Raises:
        ValueError: JAX cannot take the step in, or cannot export it.
    """
    step = StepFunction(lowered, precision)
    with jax.enable_x64(True):
        function, arguments = _function(lowered, step, steps)
        jitted = jax.jit(function, donate_argnums=0)
        exported = export.export(jitted, platforms=PLATFORMS)(*arguments)
    return ExportedBlock(bytes(exported.serialize()), step.variables, step.outputs)


def _function(
    lowered: LoweredStep, step: StepFunction, steps: int
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function to export, of tuples of arrays, and the shapes of its arguments."""
    block = block_of(step, steps, collects=True)
    replicas = lowered.program.replicas
    count = jax.ShapeDtypeStruct((), "int32")

    def alone(variables: Any, batches: Any, count: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        after = block(list(variables), list(batches), count)
        return tuple(after.variables), tuple(after.outputs)

    feeds = [jax.ShapeDtypeStruct((steps, *feed.shape), feed.dtype) for feed in step.feeds]
    if replicas == 1:
        return alone, (tuple(step.variables), tuple(feeds), count)

    # An axis in front numbers the replicas: of each one's random streams, and of its outputs.
    mesh = AbstractMesh((replicas,), (REPLICAS,))
    streams = len(lowered.streams)
    of_all = on_mesh(block, mesh, streams)

    def dealt(variables: Any, batches: Any, count: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        parts = [b.reshape(steps, replicas, -1, *b.shape[2:]) for b in batches]
        after = of_all(list(variables), parts, count)
        return tuple(after.variables), tuple(after.outputs)

    everywhere, own, along_batch = (
        NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), (REPLICAS,), (None, REPLICAS))
    )
    shared = len(step.variables) - streams
    variables = (
        *(
            jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=everywhere)
            for v in step.variables[:shared]
        ),
        *(
            jax.ShapeDtypeStruct((replicas, *v.shape), v.dtype, sharding=own)
            for v in step.variables[shared:]
        ),
    )
    whole = tuple(
        jax.ShapeDtypeStruct(
            (steps, feed.shape[1] * replicas, *feed.shape[2:]), feed.dtype, sharding=along_batch
        )
        for feed in feeds
    )
    return dealt, (variables, whole, count)
