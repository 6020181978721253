"""The state of one recording among several that share variables, by name.

A program whose training, evaluation and prediction are recorded one by one has the weights once:
whoever keeps them (an `AdaptedModel`, a `LegacyModel`) gives each recording a `SharedState`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.state import Retired, State
from estimator2strategy.engine.replay.tpu_variables import is_tpu


class SharedState(State):
    """The state of a recording that shares some variables; the shared ones outlive it.

    Args:
        recorded, strategy, replicated: See State.
        shared: Name -> variable, one of `strategy` where each replica has its own copy. All other
            variables (of metrics, say) are the recording's own.
    """

    def __init__(
        self,
        recorded: RecordedGraph,
        strategy: tf.distribute.Strategy | None,
        replicated: Collection[str],
        shared: Mapping[str, tf.Variable],
    ):
        super().__init__(recorded, strategy, replicated)
        self._shared = dict(shared)

    def _make_copies(self, node: str) -> Sequence[tf.Variable]:
        variable = self._shared.get(node)
        if variable is None:
            return super()._make_copies(node)
        if is_tpu(self._strategy) and node in self._replicated:
            self._tpu_variables[node] = variable
        return copies(variable)

    def retire(self) -> Retired:
        """Retires the state; keeps variables of a TPU, because its programs hold them for good."""
        held = {node: self._copies[node] for node in self._tpu_variables}
        of_tpu = dict(self._tpu_variables)
        retired = super().retire()
        self._copies, self._tpu_variables = held, of_tpu
        return retired

    def close(self) -> None:
        """Frees the state, except for the shared variables."""
        for node in self._shared:
            self._copies.pop(node, None)
            self._tpu_variables.pop(node, None)
        super().close()


def copies(variable: tf.Variable) -> tuple[tf.Variable, ...]:
    """The copies of a variable, one per replica."""
    several = isinstance(variable, tf.distribute.DistributedValues)
    return tuple(variable.values) if several else (variable,)
