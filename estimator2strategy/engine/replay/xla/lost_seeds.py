"""Finds seeded random ops to which XLA gives numbers of its own.

A seeded op of the step draws what a Session would have drawn. One inside a function (a branch, the
body of a loop) has a generator that its kernel keeps, and a compiled program has no kernels.
"""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from estimator2strategy.engine.plan import random_ops
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import has_seed
from estimator2strategy.engine.user_code import user_line

_told: set[str] = set()


def lost_seeds(recorded: RecordedGraph, names: Iterable[str]) -> dict[str, str]:
    """The user's line that made a branch or a loop -> the random op inside it, for `names`."""
    seeds: dict[str, str] = {}
    for name in names:
        inside = [
            node.op
            for function in recorded.functions_behind([name])
            for node in recorded.library[function].node_def
            if random_ops.is_stateful(node) and has_seed(node)
        ]
        if inside:
            line = user_line(recorded.graph.get_operation_by_name(name).traceback)
            seeds.setdefault(line, inside[0])
    return seeds


def warn_of_lost_seeds(recorded: RecordedGraph, names: Iterable[str]) -> None:
    """Warns of each line once in a process."""
    for line, op in lost_seeds(recorded, names).items():
        if line not in _told:
            _told.add(line)
            tf.compat.v1.logging.warning(
                "Under JAX the seed of %s has no effect in a branch or a loop (%s): XLA draws "
                "other numbers there. Draw before it, or use tf.random.stateless_uniform and its "
                "kin.",
                op,
                line,
            )
