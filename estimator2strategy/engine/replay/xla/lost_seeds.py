"""Finds seeded random ops to which XLA gives numbers of its own.

A seeded op of the step draws what a Session would have drawn, in a branch or a loop, too. One of
another kind, or in a function that cannot be given its place (`plan/draws_inside.py`), has a
generator that its kernel keeps, and a compiled program has no kernels.
"""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from estimator2strategy.engine.plan import draws_inside
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import has_seed
from estimator2strategy.engine.user_code import user_line

_told: set[str] = set()


def lost_seeds(recorded: RecordedGraph, names: Iterable[str]) -> dict[str, str]:
    """The user's line that made a node -> the random op that it is, or that is inside it."""
    seeds: dict[str, str] = {}
    for name in names:
        functions = recorded.functions_behind([name])
        others = draws_inside.out_of_reach(recorded[name], recorded.library, functions)
        inside = [node.op for node in others if has_seed(node)]
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
                "Under JAX the seed of %s has no effect (%s): XLA draws other numbers. Use "
                "tf.random.stateless_uniform and its kin.",
                op,
                line,
            )
