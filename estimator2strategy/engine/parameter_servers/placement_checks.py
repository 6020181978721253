"""Finds ops that cannot run where the program has put them, before any of them does."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import UnsupportedError

_HERE = (None, "localhost")


def check_python_ops(recorded: RecordedGraph, config: Any) -> None:
    """Refuses calls of Python functions in another process than this one, whose functions they are.

    TensorFlow says of it `KeyError: 'pyfunc_0'`, at the first step.

    Args:
        recorded: The graph of a worker.
        config: A RunConfig of its task.

    Raises:
        UnsupportedError: The message names the line of the program, and the process.
    """
    if not recorded.runs_python():
        return
    for node in recorded.nodes:
        device = tf.DeviceSpec.from_string(node.device)
        is_here = device.job == config.task_type and device.task in (None, config.task_id)
        if device.job in _HERE or is_here or not recorded.call_python([node.name]):
            continue
        traceback = recorded.graph.get_operation_by_name(node.name).traceback
        raise UnsupportedError(
            f"The program puts {node.name!r}, which calls a Python function, on {node.device}, but "
            f"the function is in this process, {config.task_type} {config.task_id}:\n"
            f"  {user_line(traceback)}\n"
            "  Make it outside of `tf.device`: then it runs on the worker."
        )
