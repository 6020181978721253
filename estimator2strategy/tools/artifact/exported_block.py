"""A block of steps, exported by JAX."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import export
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from estimator2strategy.engine.replay.xla.block import block_of
from estimator2strategy.engine.replay.xla.lowering import LoweredStep
from estimator2strategy.engine.replay.xla.precision import Precision
from estimator2strategy.engine.replay.xla.step_function import StepFunction
from estimator2strategy.tools.artifact.step_loader import REPLICAS

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
    replicas, first_stream = lowered.program.replicas, len(lowered.program.variables)
    count = jax.ShapeDtypeStruct((), "int32")

    def alone(variables: Any, batches: Any, count: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        after = block(list(variables), list(batches), count)
        return tuple(after.variables), tuple(after.outputs)

    feeds = [jax.ShapeDtypeStruct((steps, *feed.shape), feed.dtype) for feed in step.feeds]
    if replicas == 1:
        return alone, (tuple(step.variables), tuple(feeds), count)

    # Each replica draws from streams of its own: an axis in front numbers the replicas.
    def numbered(variables: Any, batches: Any, count: Any) -> tuple[Any, ...]:
        own = [v[0] if i >= first_stream else v for i, v in enumerate(variables)]
        after, outputs = alone(own, batches, count)
        after = tuple(v[None] if i >= first_stream else v for i, v in enumerate(after))
        return after, tuple(output[None] for output in outputs)

    mesh = AbstractMesh((replicas,), (REPLICAS,))
    everywhere, own, dealt = (PartitionSpec(*axes) for axes in ((), (REPLICAS,), (None, REPLICAS)))
    of_variables = tuple(
        own if i >= first_stream else everywhere for i in range(len(step.variables))
    )
    mapped = jax.shard_map(
        numbered,
        mesh=mesh,
        in_specs=(of_variables, dealt, everywhere),
        out_specs=(of_variables, own),
        # Sums inside the step are no operations of JAX: it cannot see that variables stay equal.
        check_vma=False,
    )

    def shape(of_replica: Any, spec: PartitionSpec) -> Any:
        sizes = [
            size * replicas if axis == REPLICAS else size
            for size, axis in itertools.zip_longest(of_replica.shape, spec)
        ]
        sharding = NamedSharding(mesh, spec)
        return jax.ShapeDtypeStruct(tuple(sizes), of_replica.dtype, sharding=sharding)

    streams = [
        jax.ShapeDtypeStruct((1, *v.shape), v.dtype) if i >= first_stream else v
        for i, v in enumerate(step.variables)
    ]
    variables = tuple(shape(v, spec) for v, spec in zip(streams, of_variables, strict=True))
    return mapped, (variables, tuple(shape(feed, dealt) for feed in feeds), count)
