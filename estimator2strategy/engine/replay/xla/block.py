"""A block of steps as one program of JAX.

    block = block_of(step, loss=0, steps=10)
    with jax.enable_x64(True):
        after = jax.jit(block, donate_argnums=0)(variables, batches, 10)
    after.variables, after.outputs, after.nan_since

`batches` are stacked: their first axis numbers the steps. Fewer steps than were stacked may run, so
a block that meets the end of the input needs no other program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh, PartitionSpec

from estimator2strategy.engine.replay.xla.step_function import Arrays, StepFunction

# The name of the only axis of a mesh: that of the replicas.
REPLICAS = "replicas"


class BlockResults(NamedTuple):
    """The results of a block.

    Attributes:
        variables: List of the values of all variables, the random streams last.
        outputs: List of the results of the last step; or of all steps, which a first axis numbers.
            On a mesh there is an axis in front that numbers the replicas.
        nan_since: int32 scalar: the step, counted from 1, since which the loss is NaN; 0: it is
            not. On a mesh one for each replica.
    """

    variables: Any
    outputs: Any
    nan_since: Any


Block: TypeAlias = Callable[[Arrays, Arrays, Any], BlockResults]


def block_of(
    step: StepFunction,
    steps: int,
    loss: int | None = None,
    collects: bool = False,
    flags: bool = False,
) -> Block:
    """The block of one device.

    Args:
        step: One step.
        steps: The number of steps that batches are stacked for. A block of one has no loop.
        loss: Number of the output that is watched for NaN; None: none is.
        collects: True if the outputs of all steps are returned.
        flags: True if the last output has flags: they stay raised until the end of the block.
    """

    def one(number: Any, variables: Arrays, batch: Arrays, since: Any) -> tuple[Any, ...]:
        outputs, variables = step(batch, variables)
        if loss is not None:
            is_nan = jnp.isnan(outputs[loss]).any()
            since = jnp.where(is_nan, jnp.where(since == 0, number + 1, since), 0)
        return outputs, variables, since

    def single(variables: Arrays, batches: Arrays, count: Any) -> BlockResults:
        del count
        batch = [stacked[0] for stacked in batches]
        outputs, after, since = one(jnp.int32(0), variables, batch, jnp.int32(0))
        return BlockResults(after, [o[None] for o in outputs] if collects else outputs, since)

    def loop(variables: Arrays, batches: Arrays, count: Any) -> BlockResults:
        def body(number: Any, carried: Any) -> Any:
            variables, kept, since = carried
            batch = [jax.lax.dynamic_index_in_dim(b, number, keepdims=False) for b in batches]
            outputs, variables, since = one(number, variables, batch, since)
            if flags and not collects:
                outputs[-1] |= kept[-1]
            if collects:
                outputs = [k.at[number].set(o) for k, o in zip(kept, outputs, strict=True)]
            return variables, outputs, since

        first = (steps,) if collects else ()
        kept = [jnp.zeros((*first, *out.shape), out.dtype) for out in step.outputs]
        start = (list(variables), kept, jnp.int32(0))
        return BlockResults(*jax.lax.fori_loop(jnp.int32(0), count, body, start))

    return single if steps == 1 else loop


def on_mesh(block: Block, mesh: Mesh | AbstractMesh, streams: int) -> Block:
    """The block of all replicas: each variable is whole on each device, batches are dealt out.

    Args:
        block: The block of one device.
        mesh: The devices, on an axis called `REPLICAS`.
        streams: The number of variables at the end, random streams, of which each replica has its
            own: their first axis numbers the replicas. So does the second axis of batches.
    """
    everywhere, numbered = PartitionSpec(), PartitionSpec(REPLICAS)

    def of_replica(shared: Arrays, own: Arrays, batches: Arrays, count: Any) -> tuple[Any, ...]:
        parts = [stacked[:, 0] for stacked in batches]
        after = block([*shared, *(o[0] for o in own)], parts, count)
        others = after.variables[: len(shared)]
        rows = [*after.variables[len(shared) :], *after.outputs, after.nan_since]
        return others, [row[None] for row in rows]

    mapped = jax.shard_map(
        of_replica,
        mesh=mesh,
        in_specs=(everywhere, numbered, PartitionSpec(None, REPLICAS), everywhere),
        out_specs=(everywhere, numbered),
        # Sums inside the step are no operations of JAX: it cannot see that variables stay equal.
        check_vma=False,
    )

    def of_all(variables: Arrays, batches: Arrays, count: Any) -> BlockResults:
        shared = len(variables) - streams
        others, rows = mapped(variables[:shared], variables[shared:], batches, count)
        *outputs, nan_since = rows[streams:]
        return BlockResults([*others, *rows[:streams]], outputs, nan_since)

    return of_all
