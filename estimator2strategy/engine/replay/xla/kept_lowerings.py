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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import tensorflow as tf

from estimator2strategy.engine import kept_folder
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
    key = None if _is_by_chance(program) else _key(program, specs, watched)
    folder = kept_folder.of("jax")
    if key is None or folder is None:
        return lower_step(program, streams, specs, watched)
    path = folder / f"{key}.step"
    found = _read(path, program, streams)
    if found is None:
        found = lower_step(program, streams, specs, watched)
        _write(path, found, streams)
    return found


def _is_by_chance(program: CoreProgram) -> bool:
    """True if a function draws without a seed: its seed would be a constant of the program."""
    recorded = program.recorded
    return any(
        "seed2" in node.attr and not has_seed(node)
        for function in recorded.functions_behind(program.nodes)
        for node in recorded.library[function].node_def
    )


def _key(
    program: CoreProgram, specs: Sequence[tf.TensorSpec], watched: Sequence[Failure]
) -> str | None:
    """The name of a step's file; None if it calls Python."""
    recorded, names = program.recorded, [*program.variables, *program.nodes]
    graph = tf.compat.v1.GraphDef(versions=recorded.versions)
    graph.node.extend(map(recorded.__getitem__, names))
    functions = map(recorded.library.__getitem__, recorded.functions_behind(names))
    graph.library.function.extend(functions)
    nodes = fingerprint_of(graph)
    if nodes.python:
        return None
    placed = sorted(program.done.intersection(_inputs(recorded, names)))
    facts = [
        *(tf.__version__, _engine(), [os.environ.get(name) for name in _SETTINGS]),
        *(program.feeds, program.outputs, program.ops, program.replicas, placed),
        *([str(spec) for spec in specs], [str(failure) for failure in watched]),
        [_beside(recorded, name) for name in program.nodes],
    ]
    return hashlib.blake2b(nodes.digest + repr(facts).encode(), digest_size=20).hexdigest()


def _inputs(recorded: RecordedGraph, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        for edge in recorded[name].input:
            yield edge.lstrip("^").partition(":")[0]


def _beside(recorded: RecordedGraph, name: str) -> tuple[object, ...]:
    """What nodes do not say: when the rest of the graph lets one run, and how much it draws."""
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
    recorded = lowered.program.recorded
    rows = [
        [(name, seed2 if has_seed(recorded[name]) else None) for name, seed2 in row.items()]
        for row in map(streams.layout, lowered.streams)
    ]
    header = json.dumps(rows).encode()
    data = b"\n".join([_checksum(header, lowered.module), header, lowered.module])
    kept_folder.write(path, data)


def _checksum(header: bytes, module: bytes) -> bytes:
    return hashlib.blake2b(header + b"\n" + module, digest_size=20).hexdigest().encode()
