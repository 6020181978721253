"""The variables of a program, by name, on which the recordings of all its modes run."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import tensorflow as tf

from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.shared_state import copies
from estimator2strategy.engine.replay.tpu_variables import uninitialized_variable
from estimator2strategy.engine.runtime.monitored import replay_of
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.errors import CheckpointError

tf1 = tf.compat.v1


class SharedVariables:
    """Makes a variable for each name that a recording is the first to have.

    Args:
        by_name: Where to put them: legacy name -> variable, in the order in which the program made
            them. One of a strategy has a copy for each replica.
    """

    def __init__(self, by_name: MutableMapping[str, tf.Variable]):
        self.by_name = by_name

    def runs_of(self, recording: Recording) -> Runs:
        """A recording on these variables.

        All replicas of an evaluation have the values of the first one, as those of an Estimator
        had: they were restored. In training each replica has moving averages of its own. So a
        recording for replicas that is not the first one has copies; see `give_values`.
        """
        if self.by_name and recording.host_strategy is not None:
            return Runs(replay_of(recording, {}))
        return Runs(replay_of(recording, self._of(recording)))

    def _of(self, recording: Recording) -> Mapping[str, tf.Variable]:
        """The variables of a recording, by name; those that are new are made, without a value."""
        names = []
        for variable in recording.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES):
            name = variable.handle.op.name
            names.append(name)
            if name not in self.by_name:
                strategy = recording.host_strategy if name in recording.replicated else None
                shape = tf.TensorShape(variable.shape.as_proto())
                with modern_world(), tf.init_scope():
                    self.by_name[name] = uninitialized_variable(
                        strategy, name, shape, variable.dtype.base_dtype, variable.trainable
                    )
        return {name: self.by_name[name] for name in names}

    def give_values(self, session: SavingSession, checkpoint: str | None) -> None:
        """Gives the variables of a session their values.

        Args:
            checkpoint: Has the values of variables that are new; else they are initial ones.
        """
        state = session.state
        collected = session.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
        initializers = {v.handle.op.name: v.initializer for v in collected}
        with modern_world():
            for name in initializers.keys() & self.by_name.keys():
                source, target = copies(self.by_name[name])[0], state.variable(name)
                if source is not target:
                    target.assign(source.read_value())
            state.broadcast(initializers)
            fresh = [name for name in initializers if not state.has_value(name)]
        if not fresh:
            return
        session.run([initializers[name] for name in fresh])
        if checkpoint:
            reader = tf.train.load_checkpoint(checkpoint)
            with modern_world():
                for name in filter(reader.has_tensor, fresh):
                    state.variable(name).assign(reader.get_tensor(name))
                state.broadcast(fresh)

    def load(self, checkpoint: str) -> None:
        """Gives each variable what a checkpoint has of it; what it lacks keeps its value.

        Raises:
            CheckpointError: A shape differs. Nothing has changed then.
        """
        reader = tf.train.load_checkpoint(checkpoint)
        shapes = reader.get_variable_to_shape_map()
        kept = [name for name in self.by_name if name not in shapes]
        tf1.logging.info("Not in %s, and left as they are: %s", checkpoint, kept or "none")
        there = {name: v for name, v in self.by_name.items() if name in shapes}
        wrong = [
            f"  {name} has the shape {shapes[name]} there, and {variable.shape} in the model"
            for name, variable in there.items()
            if not variable.shape.is_compatible_with(shapes[name])
        ]
        if wrong:
            raise CheckpointError("\n".join([f"{checkpoint} does not fit:", *wrong]))
        for name, variable in there.items():
            variable.assign(reader.get_tensor(name))


class KeptRuns(ReplayCache):
    """The runs of one recording that is run again and again, on a TPU too."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: Runs | None = None

    def take(self, recording: Recording) -> Runs:
        """As of ReplayCache; at the first time, they are made."""
        runs, self._runs = self._runs, None
        return runs or self._made(recording)

    def put(self, recording: Recording, runs: Runs) -> None:
        """As of ReplayCache."""
        del recording
        self._runs = runs

    def _made(self, recording: Recording) -> Runs:
        return Runs(replay_of(recording, {}))


class OnShared(KeptRuns):
    """The same, on shared variables."""

    def __init__(self, variables: SharedVariables):
        super().__init__()
        self._variables = variables

    def _made(self, recording: Recording) -> Runs:
        return self._variables.runs_of(recording)
