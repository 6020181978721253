"""Refuses, on emulated cores too, the parts of a core's program that a TPU would refuse.

    check_core(recording)

A CPU runs strings, tables and Python functions, and finds shapes out as it goes. The same program
would then fail on its first day on a TPU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.xla_kernels import why_not_compiled
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.replay.xla.diagnoses import diagnose, first_line, fix_of_op
from estimator2strategy.engine.replay.xla.lowering import LoweringError, lower
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.engine.xla.core_program import UnsupportedOp, core_program, unsupported
from estimator2strategy.errors import UnsupportedError

_WHY = (
    "  The cores are emulated, and refuse what a TPU refuses. With use_tpu=False the host runs it."
)
_SHOWN = 5  # ops of one kind
_WITHOUT_SHAPE = frozenset({tf.resource, tf.variant})


def check_core(recording: Recording, shapes: bool = True) -> None:
    """Checks what model_fn recorded for a core; says in the log what a TPU may not have.

    Args:
        shapes: True if all shapes must be known, or have a bound.

    Raises:
        UnsupportedError: A TPU would refuse it: strings, a table or another resource of the host, a
            Python function, or a shape that depends on the data.
    """
    program = core_program(recording)
    _check_outputs(program)
    refusals = [*_host_resources(program), *unsupported(program)]
    on_core = [op for op in refusals if not _is_outside(program, op)]
    host_only = [op for op in on_core if op.host_only]
    if host_only:
        raise _no_kernel(program, host_only)
    if on_core:
        _warn(program, on_core)
    elif shapes and not refusals:
        _check_shapes(program)


def _is_outside(program: CoreProgram, op: UnsupportedOp) -> bool:
    """True if an op was made in `tf.tpu.outside_compilation`, which gives it to the host."""
    code = tf.compat.v1.tpu.outside_compilation.__code__
    place = (code.co_filename, code.co_name)
    traceback = program.recorded.graph.get_operation_by_name(op.node).traceback
    return any((frame.filename, frame.name) == place for frame in traceback)


def _check_outputs(program: CoreProgram) -> None:
    """Raises UnsupportedError if a core is to give the host a string."""
    for name in program.outputs:
        tensor = program.recorded.graph.get_tensor_by_name(name)
        if tensor.dtype == tf.string:
            raise UnsupportedError(
                f"{tensor.dtype} is not a supported TPU outfeed type. It is the type of {tensor}, "
                "in the predictions, or for a host_call or eval_metrics, made at "
                f"{user_line(tensor.op.traceback)}\n"
                "  Give numbers to the host, and make strings of them there: in a host_call, or "
                "where the predictions are read.\n"
                f"{_WHY}"
            )


def _host_resources(program: CoreProgram) -> list[UnsupportedOp]:
    recorded = program.recorded
    return [
        UnsupportedOp(name, recorded[name].op, "has no XLA kernel", host_only=True)
        for name in recorded.ancestors(program.roots)
        if recorded.creates_resource(name) and why_not_compiled(recorded[name])
    ]


def _no_kernel(program: CoreProgram, ops: list[UnsupportedOp]) -> UnsupportedError:
    made = "\n".join(_described(program.recorded, ops))
    fixes = "\n".join(dict.fromkeys(f"  {fix}" for op in ops if (fix := fix_of_op(op.op))))
    fix = fixes or "  Do it in input_fn, or in a host_call."
    return UnsupportedError(
        "Detected unsupported operations when trying to compile model_fn on XLA_TPU_JIT:\n"
        f"{made}\n{fix}\n{_WHY}"
    )


def _described(recorded: RecordedGraph, ops: Iterable[UnsupportedOp]) -> list[str]:
    """A line for each of the first ops, with the user's line."""
    of_type = {(op.op, op.node): op for op in ops}.values()
    lines = []
    for op in list(of_type)[:_SHOWN]:
        line = user_line(recorded.graph.get_operation_by_name(op.node).traceback)
        lines.append(
            f"  {op.op} (No registered '{op.op}' OpKernel for XLA_TPU_JIT devices compatible with "
            f"node {op.node}), made at {line}"
        )
    return lines


def _warn(program: CoreProgram, ops: list[UnsupportedOp]) -> None:
    tf.compat.v1.logging.warn(
        "XLA has no kernel for ops of model_fn, and a TPU would probably refuse them:\n%s\n"
        "  e2s check --tpu asks the TPU compiler.",
        "\n".join(_described(program.recorded, ops)),
    )


def _check_shapes(program: CoreProgram) -> None:
    """Lets XLA judge a program whose shapes are not all known.

    A shape that has a bound is no error: tf.where and tf.boolean_mask have one.

    Raises:
        UnsupportedError: XLA refuses it.
    """
    if not _has_unknown_shapes(program):
        return
    try:
        lower(dataclasses.replace(program, replicas=1))
    except LoweringError as error:
        graph = program.recorded.graph
        lines = [user_line(graph.get_operation_by_name(n).traceback) for n in error.nodes[:1]]
        made = f", made at {lines[0]}" if lines else ""
        told = diagnose(error.text)
        said = first_line(error.text).rstrip(".")
        if not told.fix:
            tf.compat.v1.logging.warn(
                f"XLA does not take model_fn, and a TPU would probably refuse it: {said}{made}"
            )
            return
        raise UnsupportedError(
            f"{said}{made}\n  {told.cause[0].upper()}{told.cause[1:]}.\n  {told.fix}\n{_WHY}"
        ) from error


def _has_unknown_shapes(program: CoreProgram) -> bool:
    operation = program.recorded.graph.get_operation_by_name
    outputs = (tensor for name in program.nodes for tensor in operation(name).outputs)
    return any(
        tensor.dtype not in _WITHOUT_SHAPE and not tensor.shape.is_fully_defined()
        for tensor in outputs
    )
