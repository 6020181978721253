"""The replicas of all processes that train in step, and which of them are this process's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from estimator2strategy.engine.plan import rewrites


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
