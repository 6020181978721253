"""Runs that give variables constants, or do nothing: no program is traced for them.

Sessions start with such runs, each once: zeros for the sums of metrics, a group of no initializers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.engines.step import Engine, Ran, Request
from estimator2strategy.engine.replay.replay import Replay

_NO_WORK = frozenset({"Const", "Fill", "NoOp", "VarHandleOp"})

# Elements of a value that is as well made by a program.
_LARGE = 2**16


class Assign(Engine):
    """Gives variables constants; needs no traced program.

    Args:
        replay: The graph and its state.
        values: Variable (its VarHandleOp) -> what it is given.
    """

    functions = ()

    def __init__(self, replay: Replay, values: Mapping[str, np.ndarray]):
        self._replay, self._values = replay, values

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        """Runs the request once; see `Engine.run`."""
        del steps, feeds
        for node, value in self._values.items():
            handle = self._replay.state.handle(node)
            tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(value))
        return Ran(1, [])


def build(replay: Replay, request: Request) -> Assign | None:
    """The engine of a run that is no step; None if it does more, or for more than one device."""
    state = replay.state
    if request.tensors or request.feeds or state.num_replicas > 1 or state.peers:
        return None
    if splice_lib.needed(replay.splices, replay.recorded, set(request.ops), fed=set()):
        return None
    values = _values(replay.recorded, request.ops)
    return None if values is None else Assign(replay, values)


def _values(recorded: RecordedGraph, ops: Sequence[str]) -> dict[str, np.ndarray] | None:
    """Variable -> the constant that it is given; None if `ops` do anything else."""
    values: dict[str, np.ndarray] = {}
    for name in recorded.ancestors(ops):
        node = recorded[name]
        if node.op in _NO_WORK:
            continue
        if node.op != "AssignVariableOp":
            return None
        variable, source = input_node(node.input[0]), input_node(node.input[1])
        value = _constant(recorded, source)
        if recorded[variable].op != "VarHandleOp" or value is None or variable in values:
            return None
        values[variable] = value
    return values


def _constant(recorded: RecordedGraph, name: str) -> np.ndarray | None:
    node = recorded[name]
    if node.op == "Const":
        value: np.ndarray = tf.make_ndarray(node.attr["value"].tensor)
    elif node.op == "Fill":
        dims, of = (_constant(recorded, input_node(edge)) for edge in node.input[:2])
        if dims is None or of is None or dims.prod() > _LARGE:
            return None
        value = np.full(dims, of)
    else:
        return None
    return value if value.size <= _LARGE else None
