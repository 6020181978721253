"""Runs that cannot go on: variables without a value, unopened summary writers, no room on a TPU.

In a function, a variable without a value reads as an empty tensor, and a step may go on with it.
A Session raises an error.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.user_code import user_line

_NO_ROOM = re.compile(r"\bhbm\b|bottom of memory", re.IGNORECASE)


def read_at_once(
    recorded: RecordedGraph, names: Sequence[str], feeds: Sequence[str], is_step: bool
) -> list[str]:
    """The variables (their VarHandleOps) that must have a value before a run starts.

    Only reads that wait for nothing count: others may wait for the value, or never run.

    Args:
        names: Names of the tensors and ops that run.
        feeds: Names of tensors that are fed.
        is_step: True if they are a step: all that it reads must have a value before it begins. Any
            other run may initialise variables that it reads.
    """
    fed = set(map(input_node, feeds))
    behind = recorded.ancestors(map(input_node, names), lambda edge: input_node(edge) in fed)
    read = {input_node(recorded[name].input[0]) for name in behind if recorded.reads_at_once(name)}
    written = () if is_step else recorded.variables_written(names)
    return sorted(n for n in read.difference(written) if recorded[n].op == "VarHandleOp")


def refuse_if_uninitialized(state: State, node: str) -> None:
    """Raises a FailedPreconditionError if the variable of a VarHandleOp has no value."""
    if not state.has_value(node):
        raise tf.errors.FailedPreconditionError(
            None, None, f"Attempting to use uninitialized value {node}"
        )


@contextlib.contextmanager
def naming_unopened_writers(recorded: RecordedGraph, state: State) -> Iterator[None]:
    """Adds, to an error about a summary writer that is not open, the line that made the writer.

    Raises:
        tf.errors.NotFoundError: A writer was not opened.
    """
    try:
        yield
    except tf.errors.NotFoundError as error:
        writer = _writer_in(error.message, state)
        if writer is None:
            raise
        line = user_line(recorded.graph.get_operation_by_name(writer).traceback)
        raise tf.errors.NotFoundError(
            error.node_def,
            error.op,
            f"Nothing has opened the summary writer made at {line}\n"
            "  Make what it writes wait for writer.init() (tf.control_dependencies), or run "
            "writer.init() before the first step: Scaffold(local_init_op=...). "
            "(tf.contrib.summary.summary_writer_initializer_op() is the init of all writers.)\n"
            f"  TensorFlow's words: {error.message}",
        ) from error


def _writer_in(message: str, state: State) -> str | None:
    """The summary writer that a message is about, by the name that it has in the process."""
    for node in state.made("SummaryWriter"):
        resource = state.found(node)
        if resource and resource.node.attr["shared_name"].s.decode() in message:
            return node
    return None


@contextlib.contextmanager
def explaining_no_room() -> Iterator[None]:
    """Puts what is wrong before the error of a TPU that has no room for a program.

    Raises:
        tf.errors.ResourceExhaustedError: The TPU's own, so explained.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        if not _NO_ROOM.search(error.message):
            raise
        raise tf.errors.ResourceExhaustedError(
            error.node_def,
            error.op,
            "The model does not fit into the memory of a TPU core with this batch.\n"
            "  e2s check model.py:model_fn --input data.py:input_fn --tpu v3-8 --fit-batch says "
            "what it takes, and finds the largest batch.\n"
            f"  {error.message}",
        ) from error
