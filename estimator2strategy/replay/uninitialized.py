"""Variables that are read before they have a value.

Read in a function, a variable without a value is an empty tensor, with which a step may well go on.
A Session says that it has none.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from estimator2strategy.plan.edges import input_node
from estimator2strategy.plan.graph import RecordedGraph
from estimator2strategy.replay.state import State


def refuse_uninitialized(
    recorded: RecordedGraph,
    state: State,
    names: Sequence[str],
    feeds: Sequence[str],
    is_step: bool,
) -> None:
    """Raises where what is about to run reads variables that have no value.

    Only reads that wait for nothing count: others may wait for the value, or never run.

    Args:
        names: Names of the tensors and ops that are about to run.
        feeds: Names of tensors that are fed.
        is_step: Whether they are a step, at whose begin all it reads must have a value; what is
            none may initialise variables that it reads.

    Raises:
        tf.errors.FailedPreconditionError: See above; names the first of the variables.
    """
    fed = set(map(input_node, feeds))
    behind = recorded.ancestors(map(input_node, names), lambda edge: input_node(edge) in fed)
    read = {input_node(recorded[name].input[0]) for name in behind if recorded.reads_at_once(name)}
    written = () if is_step else recorded.variables_written(names)
    for node in sorted(read.difference(written)):
        if recorded[node].op == "VarHandleOp":
            refuse_if_uninitialized(state, node)


def is_initialized(state: State, node: str) -> bool:
    """Whether the variable of a VarHandleOp has a value."""
    return bool(tf.raw_ops.VarIsInitializedOp(resource=state.handle(node)))


def refuse_if_uninitialized(state: State, node: str) -> None:
    """Raises a FailedPreconditionError if the variable of a VarHandleOp has no value."""
    if not is_initialized(state, node):
        raise tf.errors.FailedPreconditionError(
            None, None, f"Attempting to use uninitialized value {node}"
        )
