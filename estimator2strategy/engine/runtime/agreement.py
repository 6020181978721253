"""Compares the programs of processes that train in step, and shows where they differ.

Each process describes its program. All compare every description with the chief's, and come to the
same result.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import CROSS_REPLICA_SUM

tf1 = tf.compat.v1
Facts: TypeAlias = Mapping[str, Any]

# These may differ: names, places, seeds.
_OF_EACH = frozenset({"_class", "_output_shapes", "seed", "seed2", "shared_name", "container"})
_SHOWN = 3


def facts_of(recorded: RecordedGraph, roots: Iterable[str], devices: int = 1) -> dict[str, Any]:
    """The facts of this process's training: its devices, variables, sums over processes, and step.

    The input may differ, and so may initial values: the chief's are taken.

    Args:
        roots: The nodes that a step runs.
        devices: The number of its devices.
    """
    recorded.refresh()
    takers = {node.name for node in recorded.nodes if node.op.startswith("IteratorGetNext")}
    behind = recorded.ancestors(roots, lambda edge: input_node(edge) in takers)
    nodes = [recorded[name] for name in behind if name not in takers]
    variables = {
        node.name: f"{tf.as_dtype(node.attr['dtype'].type).name} "
        f"{tf.TensorShape(node.attr['shape'].shape)}"
        for node in nodes
        if node.op == "VarHandleOp"
    }
    return {
        "devices": devices,
        "variables": variables,
        "sums": sum(node.op == CROSS_REPLICA_SUM for node in nodes),
        "step": [[_digest(node), f"{node.op} {node.name!r}{_value(node)}"] for node in nodes],
    }


def _digest(node: Any) -> str:
    digest = hashlib.blake2b(f"{node.op} {len(node.input)}".encode(), digest_size=6)
    for name in sorted(set(node.attr) - _OF_EACH):
        if not node.attr[name].HasField("func"):  # functions have made-up names
            digest.update(name.encode() + node.attr[name].SerializeToString(deterministic=True))
    return digest.hexdigest()


def _value(node: Any) -> str:
    if node.op != "Const":
        return ""
    value = tf.make_ndarray(node.attr["value"].tensor)
    return f" = {value.tolist()}" if value.size == 1 else f" of shape {list(value.shape)}"


def differences(chief: Facts, other: Facts) -> tuple[list[str], list[str]]:
    """(differences that forbid training together, those that change it), a line each."""
    fatal = []
    if chief["devices"] != other["devices"]:
        fatal.append(f"{other['devices']} device(s), the chief has {chief['devices']}")
    for name in sorted({*chief["variables"], *other["variables"]}):
        of_chief, of_other = (facts["variables"].get(name) for facts in (chief, other))
        if of_chief != of_other:
            fatal.append(
                f"variable {name}: {of_other or 'none'}, the chief has {of_chief or 'none'}"
            )
    if chief["sums"] != other["sums"]:
        fatal.append(f"{other['sums']} sums over the processes, the chief has {chief['sums']}")
    of_chief, of_other = (Counter(digest for digest, _ in f["step"]) for f in (chief, other))
    names = dict(map(tuple, [*chief["step"], *other["step"]]))
    lines = [f"only it has {names[digest]}" for digest in of_other - of_chief]
    lines += [f"only the chief has {names[digest]}" for digest in of_chief - of_other]
    return fatal, lines


def check(facts: Facts, gather: Callable[[bytes], Sequence[bytes]]) -> None:
    """Compares the programs of all processes.

    Args:
        facts: Of this process.
        gather: Gives what each process, the chief first, called it with.

    Raises:
        ValueError: Some process has other variables than the chief, or sums up other things. The
            message names them. Where only the step differs, that is logged.
    """
    texts = gather(zlib.compress(json.dumps(facts).encode()))
    chief, *others = (json.loads(zlib.decompress(text)) for text in texts)
    refused = []
    for number, other in enumerate(others, start=1):
        fatal, lines = differences(chief, other)
        refused += [f"  process {number} has {line}" for line in fatal]
        if lines and not fatal:
            warn(f"Process {number}", lines)
    if refused:
        raise ValueError(refusal(refused))


def warn(who: str, lines: Sequence[str]) -> None:
    """Logs how the step of a process differs from the chief's, a line each."""
    more = f"\n  and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    tf1.logging.warn(
        "%s does not train the chief's step:\n  %s%s\n  Start all processes with the same code and "
        "flags.",
        who,
        "\n  ".join(lines[:_SHOWN]),
        more,
    )


def refusal(lines: Sequence[str]) -> str:
    """The error where processes cannot train together, for the reasons in `lines`."""
    return (
        "The processes cannot train together:\n"
        + "\n".join(lines[: 2 * _SHOWN])
        + "\n  Start all of them with the same code and flags."
    )


def padded(text: bytes, length: int) -> np.ndarray:
    """`text` as an int32 vector that can be added to zeros."""
    return np.frombuffer(text.ljust(length, b"\0"), np.uint8).astype(np.int32)
