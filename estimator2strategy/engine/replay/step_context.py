"""The facts that hold while one step is traced: its own, and the replicas that it meets at sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from estimator2strategy.engine.plan import rewrites


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


@dataclasses.dataclass(frozen=True)
class Peers:
    """The replicas with which those of this process meet at each sum.

    The sums are collectives of TensorFlow, over all devices of all processes.

    Attributes:
        first: The number of this process's first replica among all.
        count: The number of all replicas.
        sums: Number of the collective of each cross-replica sum, by its name; see
            `rewrites.for_replica`. All processes number them alike.
    """

    first: int
    count: int
    sums: Mapping[str, int]

    def rewrite(self, replica: int = 0) -> rewrites.Rewrite:
        """The rewrite for a replica of this process."""
        return rewrites.for_replica(self.first + replica, self.count, self.sums)
