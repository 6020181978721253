"""Finds random ops in functions of datasets, such as that of a `map`.

TensorFlow saves which element of a dataset comes next, but not the place of a random op in its
stream: after a restore it begins anew.
"""

from __future__ import annotations

from typing import Any

from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.user_code import user_line


def lines_of_random_inputs(replay: Replay) -> list[str]:
    """The user's lines that made datasets whose functions draw seeded random numbers.

    Ops without a seed are left out: their numbers are others in each process in any case.
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
