"""Recorded graphs of a core: ops, types and shapes that no TPU has, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.host_op_table import HOST_OPS
from estimator2strategy.tools.check.request import Mode
from estimator2strategy.tools.check.rule import Hit

if TYPE_CHECKING:  # rules are read without TensorFlow
    import tensorflow as tf

    from estimator2strategy.tools.check.levels.recorded_graph import Recorded
    from estimator2strategy.tools.check.levels.subject import Subject


def no_kernel(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Ops that no TPU compiler knows."""
    if not recorded.on_cores or recorded.recording is None:
        return
    # Not at the top: rules are read without TensorFlow.
    from estimator2strategy.engine.xla.core_program import core_program, described, unsupported

    for found in unsupported(core_program(recorded.recording)):
        if found.op not in HOST_OPS:  # E2S606
            message, fix = described(found)
            op = recorded.graph.get_operation_by_name(found.node)
            yield Hit(op, message, fix=fix)


# Of tensors that are no data, but handles of something on the host or on a core.
_HANDLES = frozenset({"resource", "variant"})
# Ops that hand a text on, in a cond say, to the assertion in it.
_ON_THE_WAY = frozenset({"Identity", "Switch", "Merge"})
# `kTpuAllTypes`, tensorflow/core/tpu/tpu_defs.h of TensorFlow 2.21.
_OF_TPU = frozenset(
    (
        *("bool", "int4", "int8", "int16", "int32", "int64", "qint8", "qint32"),
        *("uint4", "uint8", "uint16", "uint32", "uint64", "quint8"),
        *("bfloat16", "float16", "float32", "float64", "complex64"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz"),
        *("float8_e5m2", "float8_e5m2fnuz"),
    )
)


def no_dtype(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Types of tensors that a TPU has not."""
    if not subject.model.for_tpu:
        return
    # Cores refuse strings, so the input is looked at where it is recorded for one device.
    for name, tensor in recorded.fed_by_name.items():
        if tensor.dtype.name not in _OF_TPU:
            yield Hit(
                subject.inputs[recorded.mode],
                f"{recorded.mode}: input_fn feeds {name} as {tensor.dtype.name} to the cores",
            )
    for op in recorded.core_ops if recorded.on_cores else ():
        made = [t for t in op.outputs if t.dtype.base_dtype.name not in _OF_TPU | _HANDLES]
        for dtype in sorted({t.dtype.base_dtype.name for t in made if not _is_for_asserts(t)}):
            yield Hit(op, f"{op.type} makes a {dtype} tensor on a core")


def _is_for_asserts(tensor: tf.Tensor) -> bool:
    """True if a text is for the messages of assertions alone: compilers leave those out."""
    if tensor.dtype.base_dtype.name != "string" or not tensor.consumers():
        return False
    waiting, seen = [tensor], set()
    while waiting:
        for op in waiting.pop().consumers():
            if op.type in _ON_THE_WAY and op not in seen:
                seen.add(op)
                waiting.extend(op.outputs)
            elif op.type not in _ON_THE_WAY and op.type != "Assert":
                return False
    return True


def no_static_shape(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Shapes that are not known before a step runs."""
    # As one core sees them such features are refused before model_fn is called.
    if recorded.on_cores or not subject.model.for_tpu:
        return
    for name, tensor in recorded.fed_by_name.items():
        if not tensor.shape.is_fully_defined():
            yield Hit(
                subject.inputs[recorded.mode],
                f"{recorded.mode}: input_fn gives {name} the shape {tensor.shape}",
            )


def dropped_summary(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Summaries that a TPU drops."""
    if not recorded.on_cores:
        return
    for op in recorded.operations:
        if op.type in recorded.SUMMARIES and op.type != "MergeSummary" and recorded.in_model(op):
            yield Hit(op, f"{recorded.mode}: the summary {op.name!r} is not written on a TPU")


def host_op(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Python, files, prints and queues in the part of a model that a TPU executes."""
    if not recorded.on_cores:
        return
    for op in recorded.core_ops:
        for inner in (op.type, *recorded.called_by(op)):
            if inner in HOST_OPS:
                where = "" if inner == op.type else f", in a function that {op.type} calls"
                yield Hit(op, f"{recorded.mode}: {inner} ({HOST_OPS[inner]}){where}")


_SUM = "CrossReplicaSum"


def no_sum(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Cores that train each for itself."""
    if not (recorded.on_cores and recorded.mode == Mode.TRAIN):
        return
    nodes = recorded.nodes
    trainable = {v.op.name: v.op for v in recorded.graph.get_collection("trainable_variables")}
    fed = {tensor.op.name for tensor in recorded.fed}
    for op in recorded.core_ops:
        for name in recorded.writes(op) & set(trainable):
            # A value that a core computes from its batch, and that no sum has made common.
            if fed & recorded.behind([op.name], stop_at={_SUM}, only_data=True) or (
                recorded.refused and not any(n.op == _SUM for n in nodes.nodes)
            ):
                yield Hit(
                    op, f"each core changes {name!r} by what it makes of its own part of the batch"
                )


_PRODUCTS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMul"})


def int64_matmul(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Products of int64 matrices, for which a TPU has no program."""
    if not recorded.on_cores:
        return
    for op in recorded.core_ops:
        if op.type in _PRODUCTS and op.inputs[0].dtype.name in {"int64", "uint64"}:
            yield Hit(op, f"{op.type} of {op.inputs[0].dtype.name} on a core")


_CHECKS = {"Assert", "CheckNumerics", "If", "StatelessIf"}


def lost_check(recorded: Recorded, subject: Subject) -> Iterator[Hit]:
    """Checks that a compiled step leaves out."""
    if not recorded.on_cores:
        return
    # Not at the top: rules are read without TensorFlow.
    from estimator2strategy.engine.replay.swallowed import swallowed
    from estimator2strategy.engine.user_code import user_line

    inside = [op for op in recorded.operations if recorded.in_model(op)]
    behind = recorded.behind(recorded.root_ops)
    seen = set()
    for name, why in swallowed(recorded.nodes, [op.name for op in inside if op.name in behind]):
        op = recorded.graph.get_operation_by_name(name)
        place = why, user_line(op.traceback)
        if place not in seen and not name.startswith("gradients"):
            seen.add(place)
            severity = Severity.WARNING if op.type in _CHECKS else Severity.INFO
            yield Hit(op, f"nobody is told on a core if {why} ({op.type})", severity=severity)
