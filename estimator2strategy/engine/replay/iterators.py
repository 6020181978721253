"""The state of a replay's iterators: which elements come next, shuffle buffers included.

Functions that save or restore must be called in the `modern_world`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.fingerprint import fingerprint_of
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.user_code import user_line

# Parts of a state that are encoded together: few enough for the 2 GB of a protobuf.
_TOGETHER = 64
# State in functions of a dataset (a table, the place of a random op) is not saved: no error.
_IGNORE_STATE_OF_FUNCTIONS = 1


# By graph: iterator and number of nodes -> digest. Trainings with the same graph share it, and the
# examples of a `from_tensor_slices` are slow to digest.
_digests: weakref.WeakKeyDictionary[RecordedGraph, dict[tuple[str, int], str]] = (
    weakref.WeakKeyDictionary()
)


def origins(replay: Replay) -> dict[str, str]:
    """For each iterator of a Replay, a digest of the nodes that make its dataset.

    Iterators go by the name of the node that makes them.
    """
    used = replay.state.made("IteratorV2", "OneShotIterator")
    digests = _digests.setdefault(replay.recorded, {})
    nodes = replay.recorded.graph.version
    for iterator in used:
        if (iterator, nodes) not in digests:
            digests[iterator, nodes] = _origin(replay, iterator)
    return {iterator: digests[iterator, nodes] for iterator in used}


def _origin(replay: Replay, iterator: str) -> str:
    operations = replay.recorded.graph.get_operations()
    makers = [op for op in operations if op.type == "MakeIterator"]
    datasets = [op.inputs[0].op.name for op in makers if op.inputs[1].op.name == iterator]
    recorded = replay.recorded
    graph_def = tf.compat.v1.GraphDef()
    graph_def.node.extend(recorded[name] for name in recorded.ancestors([iterator, *datasets]))
    graph_def.library.function.extend(recorded.library.values())
    return fingerprint_of(graph_def).digest.hex()


def saved(replay: Replay, iterator: str) -> Iterator[bytes]:
    """Yields the state of an iterator, in parts.

    Raises:
        tf.errors.OpError: Some dataset cannot say where it is, such as that of `from_generator`.
    """
    state = tf.raw_ops.SerializeIterator(
        resource_handle=replay.state.handle(iterator),
        external_state_policy=_IGNORE_STATE_OF_FUNCTIONS,
    )
    # A slice is an op, and the first of its kind takes as long as to save all the rest.
    several = state.shape[0] > _TOGETHER
    for start in range(0, state.shape[0], _TOGETHER):
        part = state[start : start + _TOGETHER] if several else state
        yield tf.io.serialize_tensor(part).numpy()


def restore(replay: Replay, iterator: str, parts: Sequence[bytes]) -> None:
    """Puts an iterator, which has its dataset already, into a state that was `saved`.

    Raises:
        tf.errors.OpError: It is no state of that dataset. The iterator stays as it was.
    """
    state = [part for group in parts for part in tf.unstack(tf.io.parse_tensor(group, tf.variant))]
    tf.raw_ops.DeserializeIterator(
        resource_handle=replay.state.handle(iterator), serialized=tf.stack(state)
    )


def lines_of_random_inputs(replay: Replay) -> list[str]:
    """The user's lines that made datasets whose functions draw seeded random numbers.

    TensorFlow saves which element of a dataset comes next, but not the place of a random op in its
    stream: after a restore it begins anew. Ops without a seed are left out: their
    numbers are others in each process in any case.
    """
    recorded = replay.recorded
    recorded.refresh()
    makers = [
        op
        for op in recorded.graph.get_operations()
        if "Dataset" in op.type
        and any(
            _is_seeded(node)
            for function in recorded.functions_behind([op.name])
            for node in recorded.library[function].node_def
        )
    ]
    return list(dict.fromkeys(user_line(op.traceback) for op in makers))


def _is_seeded(node: Any) -> bool:
    """True for a NodeDef whose kernel keeps its place in a stream that a seed determines."""
    return "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)
