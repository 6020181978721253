"""Reads XLA's programs: serialised HloModuleProtos."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from estimator2strategy.engine import _tf_private


def fingerprint(module: bytes) -> bytes:
    """A hash of what a program computes.

    Names count for nothing, nor do lines of source: they change with what else was traced.
    """
    proto = _tf_private.HloModule.FromString(module)
    proto.name = proto.entry_computation_name = ""
    proto.id = 0
    proto.ClearField("stack_frame_index")
    for computation in proto.computations:
        computation.name = ""
        for instruction in computation.instructions:
            instruction.name = ""
            instruction.ClearField("metadata")
    return hashlib.sha256(proto.SerializeToString(deterministic=True)).digest()


def instructions(module: bytes) -> Iterator[tuple[str, str, Any]]:
    """(op of TensorFlow's that it comes from, opcode, HloInstructionProto) of each instruction."""
    for computation in _tf_private.HloModule.FromString(module).computations:
        for instruction in computation.instructions:
            yield instruction.metadata.op_name, instruction.opcode, instruction
