"""The facts that hold only while one step is traced."""

from __future__ import annotations

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class StepContext:
    """The facts of one step, an argument of all functions that trace it.

    Attributes:
        index: Number of the step in the block that repeats it, from 0 (scalar int32). None: no
            block repeats it.
        read_after: Variables (their VarHandleOps) that the host reads when the block is done.
        host_uses: Variables that the host's part of the step uses.
        ran: Names of ops that have run already in this step.
        watched: Name of the loss, if the cores of a TPU note since which step theirs is NaN.
    """

    index: tf.Tensor | None = None
    read_after: tuple[str, ...] = ()
    host_uses: frozenset[str] = frozenset()
    ran: tuple[str, ...] = ()
    watched: str | None = None
