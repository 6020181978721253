"""One step of a recording, in parts that a level can look at.

Example:

    with running(recorded) as run:
        batch = run.next_batch()                    # for each of `recorded.fed`, an array per core
        results = run.step({"loss": loss}, batch)
        run.variables()                             # name -> one array per core
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator
from estimator2strategy.engine.worlds import legacy_world, modern_world
from estimator2strategy.tools.check.levels.check_error import CheckError
from estimator2strategy.tools.check.levels.recorded_graph import Recorded

tf1 = tf.compat.v1
# Per tensor that model_fn is fed, its value on each core.
Batch = list[list[np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Run:
    """A recording with variables that have values."""

    recorded: Recorded
    recording: Recording
    session: ReplaySession

    @property
    def _cores(self) -> list[list[tf.Tensor]]:
        """Per core, the tensors of the host graph that it is fed."""
        count = len(self.recorded.fed)
        if not self.recorded.on_cores:
            return [self.recorded.fed]
        names = self.recording.splices[0].inputs
        tensors = [self.recorded.graph.get_tensor_by_name(name) for name in names]
        return [tensors[i : i + count] for i in range(0, len(tensors), count)]

    def next_batch(self) -> Batch:
        """The next batch.

        Raises:
            CheckError: There is none.
        """
        try:
            cores = self.session.run(self._cores)
        except tf.errors.OutOfRangeError as error:
            raise CheckError(
                f"{self.recorded.mode}: input_fn has no data: not even one batch could be taken.\n"
                "  Are its files there, and are they enough for a batch (drop_remainder)?"
            ) from error
        return [list(values) for values in zip(*cores, strict=True)]

    def step(self, fetches: Any, batch: Batch) -> Any:
        """The values (numpy) of fetches in a step on `batch`, in their structure."""
        feeds = {
            tensor: values[core]
            for core, tensors in enumerate(self._cores)
            for tensor, values in zip(tensors, batch, strict=True)
        }
        return self.session.run(fetches, feeds)

    def variables(self) -> dict[str, list[np.ndarray]]:
        """Name -> value on each core; the host's own variables have one."""
        replicated = set(self.recording.replicated)
        count = self.recording.strategy.num_replicas_in_sync if self.recording.strategy else 1
        found = {}
        with modern_world():
            for variable in self.recorded.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES):
                name = variable.op.name
                copies = range(count if name in replicated else 1)
                found[name] = [self.session.state.variable(name, i).numpy() for i in copies]
        return found

    def load(self, values: Mapping[str, np.ndarray]) -> None:
        """Gives variables values, on all cores."""
        for variable in self.recorded.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES):
            if variable.op.name in values:
                variable.load(values[variable.op.name], self.session)


@contextlib.contextmanager
def running(recorded: Recorded, checkpoint: str | None = None) -> Iterator[Run]:
    """A recording on variables of its own, initialised or restored."""
    recording = recorded.recording
    assert recording is not None
    path = tf.train.latest_checkpoint(checkpoint) or checkpoint if checkpoint else None
    with legacy_world(), recorded.graph.as_default():
        saver = tf1.train.Saver() if path else None
        scaffold = tf1.train.Scaffold(saver=saver) if saver else tf1.train.Scaffold()
        spec = recording.spec
        if spec.scaffold is None:
            recording = dataclasses.replace(recording, spec=spec._replace(scaffold=scaffold))
        for hook in recording.input_hooks:
            hook.begin()
        session = ReplaySessionCreator(recording, checkpoint_path=path).create_session()
        try:
            for hook in recording.input_hooks:
                hook.after_create_session(session, None)
            yield Run(recorded, recording, session)
        finally:
            session.close()


def concatenated(batch: Batch, axes: Sequence[int] | None = None) -> Batch:
    """The cores' parts of a batch as the batch of one device."""
    axes = axes or [0] * len(batch)
    return [[np.concatenate(parts, axis)] for parts, axis in zip(batch, axes, strict=True)]
