"""The ways to run steps. An engine is a module here; `engine_for` is the table of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.replay import splice
from estimator2strategy.engine.replay.engines import (
    assign,
    checkpoint_files,
    jit,
    loop,
    one_step,
    pipelined,
)
from estimator2strategy.engine.replay.engines.step import (
    Engine,
    How,
    Ran,
    Request,
    Step,
    Stopped,
)
from estimator2strategy.engine.replay.replay import Replay

__all__ = [
    "Engine",
    "How",
    "Ran",
    "Request",
    "Step",
    "Stopped",
    "engine_for",
]

Build: TypeAlias = Callable[[Replay, Step, Request, Sequence[Engine]], Engine | None]

# The first that takes the request runs it.
_ENGINES: Mapping[How, tuple[Build, ...]] = {
    How.LOOP: (loop.build,),
    How.ONE_BY_ONE: (one_step.build,),
    How.PIPELINED: (pipelined.build, loop.build),
    How.JIT: (jit.build, loop.build),
    How.TOGETHER: (one_step.build,),
}


def engine_for(
    replay: Replay, step: Step | None, request: Request, others: Sequence[Engine] = ()
) -> Engine:
    """The engine that runs a request. Must be called in the `modern_world`.

    Args:
        replay: The graph and its state.
        step: The definition of a step; None: the request is none.
        request: The fetches and feeds to run.
        others: The engines that there are already for other requests.

    Raises:
        UnsupportedError: `step.how` cannot run it, and no other way may take its place.
    """
    if replay.device is not None:
        on_device = _on_jax(replay, step, request)
        if on_device is not None:
            return on_device
    if step is None:
        without_program = assign.build(replay, request) or checkpoint_files.build(replay, request)
        return without_program or one_step.build(replay, None, request, others)
    built = (build(replay, step, request, others) for build in _ENGINES[step.how])
    return next(engine for engine in built if engine is not None)


def _on_jax(replay: Replay, step: Step | None, request: Request) -> Engine | None:
    """The engine of a request that devices of JAX run; None if the host runs it.

    A run that takes no batch is the host's: what starts a session, restores, saves.
    """
    from estimator2strategy.engine.replay.engines import on_jax

    roots = {*map(input_node, request.tensors), *request.ops}
    if step is None and not splice.needed(replay.splices, replay.recorded, roots, fed=set()):
        behind = replay.recorded.ancestors(roots)
        if not any(map(replay.recorded.takes_batch, behind)):
            return None
    return on_jax.build(replay, step, request)
