"""Finds the queues that runners fill, in a recorded graph, and all that a Session needs for them.

    queues = queues_of(graph)
    queues.takes   # the ops by which the program takes from them
    queues.ops     # all ops that fill them

Nothing runs here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import tensorflow as tf

tf1 = tf.compat.v1

_MAKERS = frozenset(
    {
        *("FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2", "RandomShuffleQueueV2"),
        *("FixedLengthRecordReaderV2", "IdentityReaderV2", "LMDBReader", "TFRecordReaderV2"),
        *("TextLineReaderV2", "WholeFileReaderV2"),
    }
)
_TAKERS = frozenset(
    {
        *("QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2"),
        *("ReaderRead", "ReaderReadV2", "ReaderReadUpTo", "ReaderReadUpToV2"),
    }
)
_LOOKS = frozenset(
    {
        *("QueueIsClosedV2", "QueueSizeV2"),
        *("ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompletedV2"),
    }
)
# Takes SparseTensors out of a map that the Session keeps: their handles went through the queue.
_UNPACKS = "TakeManySparseFromTensorsMap"
_FED = frozenset({"Placeholder", "PlaceholderV2"})
_ACCUMULATORS = frozenset(
    {
        *("ConditionalAccumulator", "ResourceConditionalAccumulator"),
        "SparseConditionalAccumulator",
    }
)


@dataclasses.dataclass(frozen=True)
class Queues:
    """The queues of a recorded graph.

    Attributes:
        takes: The ops that take from queues for the program: each with those that make
            SparseTensors of what it took.
        looks: Ops that tell about a queue, such as its size.
        ops: All that must run in a Session: for `takes` and `looks`, and to fill the queues.
        starts: The ops among these that give values to variables and tables.
    """

    takes: Sequence[Sequence[tf.Operation]]
    looks: Sequence[tf.Operation]
    ops: frozenset[tf.Operation]
    starts: Sequence[tf.Operation]

    def fed(self) -> list[tf.Operation]:
        """Those of `ops` that wait for a value from outside of the graph."""
        return [op for op in self.ops if op.type in _FED]

    def of_model(self, graph: tf.Graph) -> list[tf.Operation]:
        """Those of `ops` that make a variable of the model.

        One that the queues alone use, such as a count of what they saw, is none.
        """
        variables = graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
        return [v.op for v in variables if v.op in self.ops and self._is_shared(v)]

    def user_of(self, variable: tf.Operation) -> tf.Operation:
        """The first of `ops` that uses what `variable` makes, reads of the variable's own aside."""
        users = [op for tensor in variable.outputs for op in tensor.consumers() if op in self.ops]
        for op in users:
            following = [user for tensor in op.outputs for user in tensor.consumers()]
            users += [user for user in following if user in self.ops and user not in users]
        named = f"{variable.name}/"
        return next((op for op in users if not op.name.startswith(named)), variable)

    def _is_shared(self, variable: tf.Variable) -> bool:
        """True if anything beside the queues uses a variable, other than to start or to save it."""
        users = {op for tensor in variable.op.outputs for op in tensor.consumers()}
        plain = {"VarIsInitializedOp", "VariableShape"}
        reads = {op for op in users if op.type == "ReadVariableOp" and not _have_users(op.outputs)}
        others = users - self.ops - reads - {variable.initializer}
        return any(op.type not in plain for op in others)


def _have_users(tensors: Iterable[tf.Tensor]) -> bool:
    """True if anything but an op that nothing uses is given one of `tensors`."""
    users = [op for tensor in tensors for op in tensor.consumers()]
    return any(op.type != "Identity" or _have_users(op.outputs) for op in users)


def collecting_optimizer(graph: tf.Graph) -> tf.Operation | None:
    """An op of an optimizer that collects gradients, to apply them in another thread, or None."""
    return next((op for op in graph.get_operations() if op.type in _ACCUMULATORS), None)


def runners_of(graph: tf.Graph) -> list[tf1.train.QueueRunner]:
    """The queue runners of a graph."""
    runners: list[tf1.train.QueueRunner] = graph.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)
    return runners


def queues_of(graph: tf.Graph) -> Queues:
    """The queues that the runners of a graph fill."""
    filling = behind(op for runner in runners_of(graph) for op in _ops_of(runner))
    filled = {op for op in filling if op.type in _MAKERS}
    users = [op for op in graph.get_operations() if filled.intersection(_makers(op))]
    takers = [op for op in users if op.type in _TAKERS or _takes_inside(op, filling)]
    unpacks = [op for op in graph.get_operations() if op.type == _UNPACKS and op not in filling]
    sources = {op: next((part for part in _back(op) if part in takers), None) for op in unpacks}
    takes = [(taker, *(op for op in unpacks if sources[op] is taker)) for taker in takers]
    looks = [op for op in users if op.type in _LOOKS]
    needed = filling | behind([*looks, *(op for take in takes for op in take)])
    starts = _starts(graph, needed)
    return Queues(takes, looks, frozenset(needed | behind(starts)), starts)


def behind(ops: Iterable[tf.Operation]) -> set[tf.Operation]:
    """The ops among and behind `ops`."""
    seen: set[tf.Operation] = set()
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op not in seen:
            seen.add(op)
            waiting += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return seen


def _back(op: tf.Operation) -> Iterable[tf.Operation]:
    """The ops behind the inputs of `op`, nearest first."""
    waiting, seen = [op], set()
    while waiting:
        op = waiting.pop(0)
        if op not in seen:
            seen.add(op)
            yield op
            waiting += [tensor.op for tensor in op.inputs]


def _ops_of(runner: tf1.train.QueueRunner) -> list[tf.Operation]:
    ops = [*runner.enqueue_ops, runner.close_op, runner.cancel_op, runner.queue.queue_ref]
    return [op if isinstance(op, tf.Operation) else op.op for op in ops if op is not None]


def _makers(op: tf.Operation) -> set[tf.Operation]:
    """The ops that make the queues and readers that `op` is given."""
    sources = {tensor.op for tensor in op.inputs}
    return sources | {
        tensor.op for source in sources if source.type == "FakeQueue" for tensor in source.inputs
    }


def _starts(graph: tf.Graph, needed: set[tf.Operation]) -> list[tf.Operation]:
    """The ops that give values to the local variables, tables and iterators among `needed`."""
    keys = tf1.GraphKeys
    variables = [
        *graph.get_collection(keys.LOCAL_VARIABLES),
        *graph.get_collection(keys.GLOBAL_VARIABLES),
    ]
    starts = [variable.initializer for variable in variables if variable.op in needed]
    tables = graph.get_collection(keys.TABLE_INITIALIZERS)
    iterators = [op for op in graph.get_operations() if op.type == "MakeIterator"]
    resources = {op for op in needed if any(t.dtype == tf.resource for t in op.outputs)}
    of_resources = dict.fromkeys([*tables, *iterators])
    return starts + [
        op for op in of_resources if not resources.isdisjoint(tensor.op for tensor in op.inputs)
    ]


def _takes_inside(op: tf.Operation, filling: set[tf.Operation]) -> bool:
    """True if the functions that `op` calls, such as branches, may take from a queue."""
    return op not in filling and any(
        attr.func.name or attr.list.func for attr in op.node_def.attr.values()
    )
