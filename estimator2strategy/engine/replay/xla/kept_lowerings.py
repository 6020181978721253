"""Programs of XLA that are kept on disk, so that a second start need not trace its step again.

A file is named after the recorded nodes of a step, and all that says what becomes of them. It lies
beside the compilations of JAX (`kept_compilations.py`), with the same owner and the same limit.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from estimator2strategy.engine import kept_folder
from estimator2strategy.engine.plan import draws_inside
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.fingerprint import fingerprint_of
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import has_seed
from estimator2strategy.engine.replay.random_streams import RandomStreams
from estimator2strategy.engine.replay.swallowed import Failure
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.replay.xla.lowering import LoweredStep, lower_step

_ENGINE = Path(__file__).parents[2]
# Environment variables that change what TensorFlow makes of a step.
_SETTINGS = ("TF_XLA_FLAGS", "XLA_FLAGS")


def kept_step(
    program: CoreProgram,
    streams: RandomStreams,
    specs: Sequence[tf.TensorSpec],
    watched: Sequence[Failure],
) -> LoweredStep:
    """As `lower_step`, or what another process has made by it."""
    folder = kept_folder.folder_of("jax")
    key = _key(program, specs, watched) if folder else None
    if key is None or folder is None:
        return lower_step(program, streams, specs, watched)
    path = folder / f"{key}.step"
    lowered = _read(path, program, streams)
    if lowered is None:
        lowered = lower_step(program, streams, specs, watched)
        _write(path, lowered, streams)
    return lowered


def _key(
    program: CoreProgram, specs: Sequence[tf.TensorSpec], watched: Sequence[Failure]
) -> str | None:
    """The name of a step's file; None if it has none.

    That is a step that calls Python, or a function that draws without a seed and out of reach: its
    seed would be a constant of the program.
    """
    recorded, running = program.recorded, program.nodes
    names = [*program.variables, *running]
    functions = [recorded.library[name] for name in recorded.functions_behind(running)]
    library = recorded.library
    for name in running:
        called = recorded.functions_behind([name])
        others = draws_inside.out_of_reach(recorded[name], library, called)
        if not all(map(has_seed, others)):
            return None
    graph = tf.compat.v1.GraphDef(versions=recorded.versions)
    graph.node.extend(map(recorded.__getitem__, names))
    graph.library.function.extend(functions)
    nodes = fingerprint_of(graph)
    if nodes.python:
        return None
    inputs = {input_node(edge) for name in names for edge in recorded[name].input}
    placed = sorted(program.done & inputs)
    facts = [
        *(tf.__version__, _engine(), [os.environ.get(name) for name in _SETTINGS]),
        *(program.feeds, program.outputs, program.ops, program.replicas, placed),
        *([str(spec) for spec in specs], [str(failure) for failure in watched]),
        [_beside(recorded, name) for name in running],
    ]
    return hashlib.blake2b(nodes.digest + repr(facts).encode(), digest_size=20).hexdigest()


def _beside(recorded: RecordedGraph, name: str) -> tuple[object, ...]:
    """When the rest of the graph lets a node run, and how much it draws: nodes do not say so."""
    shape = str(recorded.shape(f"{name}:0")) if "seed2" in recorded[name].attr else ""
    order = recorded.reads_at_once(name), recorded.comes_first(name), recorded.is_read(name)
    return *order, shape


@functools.cache
def _engine() -> str:
    """A digest of the code that makes programs."""
    digest = hashlib.blake2b(digest_size=20)
    for path in sorted(_ENGINE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(path: Path, program: CoreProgram, streams: RandomStreams) -> LoweredStep | None:
    """The step of a file; None if there is none that can be used."""
    try:
        checksum, header, module = path.read_bytes().split(b"\n", 2)
    except (OSError, ValueError):
        return None
    if checksum != _checksum(header, module):
        tf.compat.v1.logging.info("A kept program, %s, is damaged: it is made again.", path)
        return None
    rows = [{n: _by_chance() if s is None else s for n, s in row} for row in json.loads(header)]
    blocks = streams.laid_out(rows)
    if blocks is None:
        return None
    kept_folder.note_use(path)
    return LoweredStep(program, module, tuple(blocks))


def _by_chance() -> int:
    return secrets.randbits(62) + 1


def _write(path: Path, lowered: LoweredStep, streams: RandomStreams) -> None:
    """Writes a file; a full disk is no hindrance."""
    recorded, names = lowered.program.recorded, lowered.program.nodes
    inside = (draws_inside.ops_inside(recorded[name], recorded.library) for name in names)
    ops = {name: recorded[name] for name in names} | {
        n: op for of in inside for n, op in of.items()
    }
    rows = [
        [(name, seed2 if has_seed(ops[name]) else None) for name, seed2 in row.items()]
        for row in map(streams.layout, lowered.streams)
    ]
    header = json.dumps(rows).encode()
    data = b"\n".join([_checksum(header, lowered.module), header, lowered.module])
    kept_folder.write(path, data)


def _checksum(header: bytes, module: bytes) -> bytes:
    return hashlib.blake2b(header + b"\n" + module, digest_size=20).hexdigest().encode()
