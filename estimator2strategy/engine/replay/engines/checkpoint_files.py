"""Runs that read or write the files of a checkpoint, and do nothing else: no program is traced.

A Saver has a few ops for each variable and runs once or twice in a short training, where tracing
them took several times as long as running them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import NodeDef
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.engines import one_step
from estimator2strategy.engine.replay.engines.step import Engine, Ran, Request
from estimator2strategy.engine.replay.replay import Replay

_raw = tf.raw_ops

# A node and its inputs -> its outputs.
_Run = Callable[[NodeDef, Sequence[tf.Tensor]], Any]

# The ops of a Saver.
_RUNS: Mapping[str, _Run] = {
    "AssignVariableOp": lambda node, x: _raw.AssignVariableOp(
        resource=x[0], value=x[1], validate_shape=node.attr["validate_shape"].b
    ),
    "Const": lambda node, x: tf.constant(tf.make_ndarray(node.attr["value"].tensor)),
    "Identity": lambda node, x: x[0],
    "MergeV2Checkpoints": lambda node, x: _raw.MergeV2Checkpoints(
        checkpoint_prefixes=x[0],
        destination_prefix=x[1],
        delete_old_dirs=node.attr["delete_old_dirs"].b,
        allow_missing_files=node.attr["allow_missing_files"].b,
    ),
    "NoOp": lambda node, x: (),
    "Pack": lambda node, x: _raw.Pack(values=x, axis=node.attr["axis"].i),
    "PlaceholderWithDefault": lambda node, x: x[0],
    "ReadVariableOp": lambda node, x: _raw.ReadVariableOp(
        resource=x[0], dtype=node.attr["dtype"].type
    ),
    "RestoreV2": lambda node, x: _raw.RestoreV2(
        prefix=x[0],
        tensor_names=x[1],
        shape_and_slices=x[2],
        dtypes=list(node.attr["dtypes"].list.type),
    ),
    "SaveV2": lambda node, x: _raw.SaveV2(
        prefix=x[0], tensor_names=x[1], shape_and_slices=x[2], tensors=x[3:]
    ),
    "Select": lambda node, x: _raw.Select(condition=x[0], x=x[1], y=x[2]),
    "ShardedFilename": lambda node, x: _raw.ShardedFilename(
        basename=x[0], shard=x[1], num_shards=x[2]
    ),
    "StaticRegexFullMatch": lambda node, x: _raw.StaticRegexFullMatch(
        input=x[0], pattern=node.attr["pattern"].s
    ),
    "StringJoin": lambda node, x: _raw.StringJoin(inputs=x, separator=node.attr["separator"].s),
}
_FILES = frozenset({"RestoreV2", "SaveV2"})
# These run where the variables are, all others on the host.
_ON_VARIABLES = frozenset({"AssignVariableOp", "ReadVariableOp"})


class CheckpointFiles(Engine):
    """Runs each op by itself.

    Args:
        replay: The graph and its state.
        request: The fetches and feeds to run.
        nodes: The nodes to run, in their order.
    """

    functions = ()

    def __init__(self, replay: Replay, request: Request, nodes: Sequence[NodeDef]):
        self._replay, self._request, self._nodes = replay, request, nodes

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        """Runs the request once; see `Engine.run`."""
        try:
            return Ran(1, self._results(feeds))
        except tf.errors.OpError:
            # A failure is told with the words and the nodes of a program.
            return one_step.build(self._replay, None, self._request, ()).run(steps, feeds)

    def _results(self, feeds: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        state = self._replay.state
        values = dict(zip(self._request.feeds, feeds, strict=True))

        def value(name: str) -> tf.Tensor:
            if name in values:
                return values[name]
            return state.handle(input_node(name))

        for node in self._nodes:
            inputs = [value(tensor_name(edge)) for edge in node.input if edge[0] != "^"]
            with tf.device(None if node.op in _ON_VARIABLES else "/CPU:0"):
                results = _RUNS[node.op](node, inputs)
            listed = results if isinstance(results, (list, tuple)) else [results]
            values |= {f"{node.name}:{i}": result for i, result in enumerate(listed)}
        return [value(name) for name in self._request.tensors]


def build(replay: Replay, request: Request) -> CheckpointFiles | None:
    """The engine of a run that is no step; None if it does more, or for more than one device."""
    recorded, state = replay.recorded, replay.state
    if state.num_replicas > 1 or state.peers or not tf.executing_eagerly():
        return None
    roots = {*map(input_node, request.tensors), *request.ops}
    fed = set(request.feeds)
    behind = recorded.ancestors(roots, lambda edge: tensor_name(edge) in fed)
    nodes = [recorded[name] for name in recorded.in_order_of_effects(behind)]
    nodes = [node for node in nodes if node.op != "VarHandleOp"]
    ops = {node.op for node in nodes}
    if not ops & _FILES or not ops <= _RUNS.keys():
        return None
    if splice_lib.needed(replay.splices, recorded, roots, set(map(input_node, fed))):
        return None
    return CheckpointFiles(replay, request, nodes)
