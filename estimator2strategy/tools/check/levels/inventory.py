"""Counts of a recording's variables, inputs, random ops, sums over cores, and metrics."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator

import tensorflow as tf

from estimator2strategy.engine.metrics.convert import convert
from estimator2strategy.engine.metrics.metric_table import row as metric_row
from estimator2strategy.tools.check.host_op_table import HOST_OPS
from estimator2strategy.tools.check.levels.facts import Cell, Fact, Number, Table
from estimator2strategy.tools.check.levels.recorded_graph import Executor, Recorded
from estimator2strategy.tools.check.request import Mode

tf1 = tf.compat.v1


def facts(recorded: Recorded) -> Iterator[Fact]:
    """The facts about a recording, in the order in which to read them."""
    yield from _variables(recorded)
    yield _fed(recorded)
    yield from _random(recorded)
    if recorded.on_cores and recorded.mode == Mode.TRAIN:
        yield from _collectives(recorded)
    yield from _host_ops(recorded)
    if recorded.mode == Mode.EVAL and recorded.recording is not None:
        yield from _metrics(recorded)


def size_in_bytes(tensor: tf.Tensor | tf.Variable) -> int:
    """The memory of a variable or tensor; 0 where its shape is not known."""
    if not tensor.shape.is_fully_defined():
        return 0
    return int(math.prod(tensor.shape.as_list()) * tensor.dtype.base_dtype.size)


def variables_take(recorded: Recorded) -> int:
    """Bytes of one copy of all variables."""
    return sum(map(size_in_bytes, recorded.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)))


def _table(
    recorded: Recorded, title: str, columns: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]
) -> Iterator[Fact]:
    """A table, if there is a row for it."""
    rows = tuple(rows)
    if rows:
        yield Table(f"{recorded.mode}: {title}", columns, rows)


def _shape(tensor: tf.Tensor | tf.Variable) -> str:
    if tensor.shape.rank is None:
        return "unknown"
    sizes = ("?" if size is None else str(size) for size in tensor.shape.as_list())
    return "x".join(sizes) or "scalar"


def _variables(recorded: Recorded) -> Iterator[Fact]:
    graph = recorded.graph
    trainable = {v.name for v in graph.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)}
    made = graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
    yield Number(f"{recorded.mode}: variables", len(made))
    yield Number(f"{recorded.mode}: variables take", variables_take(recorded), "bytes")
    rows = (
        (
            v.name.removesuffix(":0"),
            _shape(v),
            v.dtype.base_dtype.name,
            size_in_bytes(v),
            "yes" if v.name in trainable else "no",
        )
        for v in made
    )
    yield from _table(recorded, "variables", ("name", "shape", "dtype", "bytes", "trainable"), rows)


def _fed(recorded: Recorded) -> Table:
    of = "what one core is fed" if recorded.on_cores else "what model_fn is fed"
    rows = [(n, _shape(t), t.dtype.name) for n, t in recorded.fed_by_name.items()]
    return Table(f"{recorded.mode}: {of}", ("name", "shape", "dtype"), tuple(rows))


def _random(recorded: Recorded) -> Iterator[Fact]:
    drawn = [op for op in recorded.random_ops if op.name in recorded.step_ops]
    counts = collections.Counter(
        (op.type, recorded.part(op).value, "yes" if recorded.has_stream(op) else "no")
        for op in drawn
    )
    rows = [(*key, count) for key, count in sorted(counts.items())]
    columns = ("op", "in", "the same numbers in each run", "count")
    yield from _table(recorded, "random ops in a step", columns, rows)


def _collectives(recorded: Recorded) -> Iterator[Fact]:
    sums = [op for op in recorded.core_ops if op.type == "CrossReplicaSum"]
    yield Number(f"{recorded.mode}: sums over the cores in a step", len(sums))
    taken = sum(size_in_bytes(op.outputs[0]) for op in sums)
    yield Number(f"{recorded.mode}: summed over the cores in a step", taken, "bytes per core")


def _host_ops(recorded: Recorded) -> Iterator[Fact]:
    """Ops that only a host executes, and whether the host does."""
    rows: collections.Counter[tuple[str, str, str, str]] = collections.Counter()
    for op in recorded.operations:
        part = recorded.part(op)
        if op.name not in recorded.step_ops and part is Executor.MODEL:
            continue
        legal = "yes" if part is not Executor.MODEL or not recorded.on_cores else "no"
        for inner in (op.type, *recorded.called_by(op)):
            if inner in HOST_OPS:
                rows[inner, HOST_OPS[inner], part.value, legal] += 1
    columns = ("op", "needs", "in", "legal there", "count")
    counted = [(*key, count) for key, count in sorted(rows.items())]
    yield from _table(recorded, "ops that only a host executes", columns, counted)


def _metrics(recorded: Recorded) -> Iterator[Fact]:
    """The metrics of an evaluation, and what becomes of each."""
    assert recorded.recording is not None
    pairs = recorded.recording.metrics or recorded.recording.spec.eval_metric_ops or {}
    rows = []
    for name, (value, update) in sorted(pairs.items()):
        converted = convert(name, value, update, recorded.metric_calls)
        if converted is None:
            rows.append((name, "of its own", "a replay of the recorded update", ""))
        else:
            row = metric_row(converted.function)
            known = (row.keras.removeprefix("keras.metrics.") or "none", row.differences)
            rows.append((name, f"tf.metrics.{converted.function}", *known))
    columns = ("name", "made by", "nearest Keras metric", "where that differs")
    yield from _table(recorded, "metrics", columns, rows)
