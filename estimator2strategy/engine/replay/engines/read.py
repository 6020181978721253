"""Runs that only read metrics and variables: eagerly, for no program is worth tracing for them.

An evaluation ends with such a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from estimator2strategy.engine.replay.engines.step import Engine, Ran, Request
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.step_context import StepContext

_Reader = Callable[[], tf.Tensor]


class Read(Engine):
    """See the module.

    Args:
        readers: A function for each of the request's tensors, which returns its value.
    """

    functions = ()

    def __init__(self, readers: Sequence[_Reader]):
        self._readers = readers

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        """As of `Engine`, for one step."""
        del steps, feeds
        return Ran(1, [read() for read in self._readers])


def build(replay: Replay, request: Request) -> Read | None:
    """The engine of a run that is no step; None if it does more, or for more than one device."""
    state = replay.state
    if request.ops or request.feeds or state.num_replicas > 1 or state.peers:
        return None
    results = {
        name: splice for splice in replay.splices if splice.only_reads for name in splice.outputs
    }
    if results.keys().isdisjoint(request.tensors):
        return None
    readers = [_reader(replay, results, name) for name in request.tensors]
    return None if None in readers else Read([read for read in readers if read])


def _reader(replay: Replay, results: Mapping[str, Splice], name: str) -> _Reader | None:
    if name in results:
        return lambda: _result(replay, results[name], name)
    variable = replay.variable_read(name)
    return (lambda: replay.read(variable)) if variable else None


def _result(replay: Replay, splice: Splice, name: str) -> tf.Tensor:
    values = splice.merge(splice.trace(replay.recorded, replay.state, (), StepContext()))
    return values[splice.outputs.index(name)]
