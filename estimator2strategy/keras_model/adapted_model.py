"""`AdaptedModel`: the steps of a legacy program, for a loop of one's own.

    from estimator2strategy.keras_model.adapting import adapt

    model = adapt(model_fn, input_fn, steps_per_execution=100)
    model.load_checkpoint("/models/old")
    while model.global_step < 10_000:
        print(model.train())
    model.save_checkpoint("/models/old")

model_fn is recorded once per mode, by the placements of an Estimator; all modes share variables.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.runtime import checkpoints, prediction
from estimator2strategy.engine.runtime.evaluation import Evaluation, stops
from estimator2strategy.engine.runtime.latest_checkpoint import (
    checkpoints_up_to_latest,
    latest_checkpoint,
)
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.runtime.session_config import applied
from estimator2strategy.engine.runtime.training import add_default_saver
from estimator2strategy.engine.worlds import legacy_world
from estimator2strategy.engine.wrong_argument import checked, wrong_argument
from estimator2strategy.errors import CheckpointError
from estimator2strategy.estimator.checks import checked_predictions
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.estimator_recording import (
    record_evaluation,
    record_for,
    recording_graph,
)
from estimator2strategy.estimator.warm_start import warm_start
from estimator2strategy.keras_model.adapted_training import AdaptedTraining, NamingFailures
from estimator2strategy.keras_model.argument_rules import RULES
from estimator2strategy.keras_model.checkpoint_manager import NamedCheckpoints
from estimator2strategy.keras_model.shared_variables import KeptRuns, OnShared, SharedVariables

tf1 = tf.compat.v1

_MODES = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
_ARGUMENTS = {
    ModeKeys.TRAIN: ("input_fn", "train"),
    ModeKeys.EVAL: ("eval_input_fn", "evaluate"),
    ModeKeys.PREDICT: ("predict_input_fn", "predict"),
}


class AdaptedModel(tf.Module):
    """A legacy program whose steps are called from a loop of one's own; `adapt` makes it.

    model_fn and the input functions are called once each, and traced once. All modes run on the
    same variables. It can be a `trainer` and an `evaluator` of Orbit's Controller; see
    migration_guide/own_loop.md.

    Args:
        estimator: The program, and the devices that it runs on.
        input_fns: ModeKeys -> input_fn, of the modes that are to run.
        steps_per_execution: The number of steps that run in one call.

    Attributes:
        legacy_variables: Legacy name -> variable, in the order in which the program made them: the
            names that checkpoints have. Under a strategy they are variables of it, with a copy for
            each replica; reading one on the host reads the first replica's.
        steps_per_execution: As above.
    """

    def __init__(
        self,
        estimator: Estimator,
        input_fns: Mapping[str, Callable[..., Any]],
        steps_per_execution: int,
    ):
        super().__init__(name="adapted_model")
        self.legacy_variables: dict[str, tf.Variable] = {}
        self.steps_per_execution = steps_per_execution
        self._estimator = estimator
        self._input_fns = _Untracked(dict(input_fns))
        self._shared = SharedVariables(self.legacy_variables)
        self._stores = _Untracked({mode: OnShared(self._shared) for mode in _MODES})
        self._own_stores = _Untracked({mode: KeptRuns() for mode in _MODES})
        self._reads_by_itself: set[str] = set()  # modes
        self._loaded: str | None = None
        self._training: AdaptedTraining | None = None
        self._session: SavingSession
        self._start(next(mode for mode in _MODES if mode in input_fns))

    # Variables.

    @property
    def variables(self) -> tuple[tf.Variable, ...]:
        """All variables, in the order in which the program made them."""
        return tuple(self.legacy_variables.values())

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        """The variables that the program's optimizers train."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def global_step(self) -> tf.Variable:
        """The program's global step, an int64 scalar; each training step adds to it."""
        return self.legacy_variables[tf1.GraphKeys.GLOBAL_STEP]

    # Steps.

    @checked(RULES)
    def train(self, num_steps: Any = None) -> dict[str, np.ndarray]:
        """Trains for `num_steps` steps, `steps_per_execution` in a call.

        Hooks of model_fn's spec, and its host_call, are called around each call, as TPUEstimator
        did. Where the input ends in between, fewer steps run; `global_step` tells.

        Args:
            num_steps: An int or an integer scalar. None: `steps_per_execution`.

        Returns:
            {"loss": the loss of the last step, a scalar}: the mean over cores for a TPUEstimator's
            model_fn, for replicas of an Estimator's what `Estimator.train` reports.

        Raises:
            ValueError: There is no input_fn, or `num_steps` is not positive.
            tf.errors.OutOfRangeError: The input has ended: no step ran.
            tf.compat.v1.train.NanLossDuringTrainingError: A loss is NaN. No step after it ran, but
                on a TPU's cores, whose executions go on to their end.
        """
        training = self._trained()
        left = _steps(num_steps, "train", self.steps_per_execution)
        loss: np.ndarray | None = None
        while left:
            try:
                ran, loss = training.run(min(left, self.steps_per_execution))
            except tf.errors.OutOfRangeError:
                if loss is None:
                    raise
                break
            left -= ran
        assert loss is not None  # there is at least one call
        return {"loss": loss}

    @property
    def train_step(self) -> Callable[[], dict[str, tf.Tensor]]:
        """A `tf.function` without arguments that runs `steps_per_execution` steps on all replicas.

        Other `tf.function`s can call it. It returns {"loss": the loss of the last step, a
        scalar}, also if that is NaN. It calls no hooks.

        At the end of the input it raises InvalidArgumentError. The error of a failing step names
        the user's line, as in `train`. If another `tf.function` calls it, call that one inside of
        `naming_failures` for the same.
        """
        return self._train_step

    def naming_failures(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context for calling a `tf.function` of your own that calls `train_step`.

        Raises:
            tf.errors.OpError: A step failed: with the program's op and the user's line, as in
                `train`.
            ValueError: There is no input_fn.
        """
        return self._trained().naming_failures()

    @functools.cached_property
    def _train_step(self) -> Callable[[], dict[str, tf.Tensor]]:
        training, steps = self._trained(), self.steps_per_execution
        block = training.block

        @tf.function(autograph=False)
        def train_step() -> dict[str, tf.Tensor]:
            count, loss = block(tf.constant(steps))
            ended = ["The batches of input_fn have ended."]
            some = tf.debugging.Assert(count > 0, ended, name="input_of_train_step")
            with tf.control_dependencies([some]):
                return {"loss": tf.identity(loss)}

        return NamingFailures(train_step, training.naming_failures)

    @checked(RULES)
    def evaluate(self, num_steps: Any = None) -> dict[str, np.ndarray]:
        """Evaluates the variables as they are, on the batches of `eval_input_fn` from the first on.

        Args:
            num_steps: The number of batches (on replicas: of steps of all). None or -1: all.

        Returns:
            What `Estimator.evaluate` returns: name -> value, with `loss` and `global_step`.

        Raises:
            ValueError: There is no eval_input_fn, or `num_steps` is neither positive nor -1.
        """
        steps = None if _is_all(num_steps) else _steps(num_steps, "evaluate")
        evaluation = self._evaluation
        recording = evaluation.recording
        if steps is None and recording.iterations is not None:
            steps = tf.int32.max  # one call for all batches, which counts to no more
        values = self._values(recording)
        with values as (path, store, give_values), self._inside(recording.graph):
            hooks = stops(steps)
            return evaluation.run(path, hooks, store=store, give_values=give_values)

    @checked(RULES)
    def predict(self, num_steps: Any = None) -> Iterator[Any]:
        """Yields the predictions for each batch of `predict_input_fn`, from the first on.

        Args:
            num_steps: The number of batches. None or -1: all.

        Yields:
            The values (numpy) of `EstimatorSpec.predictions` for a batch.

        Raises:
            ValueError: There is no predict_input_fn, or `num_steps` is neither positive nor -1.
        """
        left = -1 if _is_all(num_steps) else _steps(num_steps, "predict")
        return self._predicted(self._prediction, left)

    def _predicted(self, recording: Recording, left: int) -> Iterator[Any]:
        with self._values(recording) as (path, store, give_values):
            predictions = checked_predictions(
                recording.spec.predictions, self._estimator.e2s_parts.program.model_fn
            )
            batches = prediction.batches(recording, predictions, path, (), store, give_values)
            with contextlib.closing(batches):
                while left:
                    batch = next(batches, None)
                    if batch is None:
                        return
                    yield batch
                    left -= 1

    @functools.cached_property
    def keras_metrics(self) -> dict[str, keras.metrics.Metric]:
        """The metrics of model_fn's evaluation as Keras metrics; see `Estimator.keras_metrics`."""
        return self._estimator.keras_metrics(self._input_fn(ModeKeys.EVAL))

    # Checkpoints.

    @checked(RULES)
    def load_checkpoint(
        self, path: str | os.PathLike[str] | None = None, partial: bool = False
    ) -> str | None:
        """Restores all variables, by name, from a legacy checkpoint.

        Args:
            path: A checkpoint, or a folder whose latest one is taken. None: the latest one of the
                program's model_dir, if there is one.
            partial: True if a variable that it lacks (an optimizer's slot, say) keeps its value.

        Returns:
            The checkpoint's path; None if none was asked for, and model_dir has none.

        Raises:
            CheckpointError: There is none at `path`, or it does not fit; the message lists each
                variable.
        """
        asked = os.fspath(path) if path is not None else self._estimator.model_dir
        newest = latest_checkpoint(asked) if tf.io.gfile.isdir(asked) else asked
        if not newest or not checkpoints.is_there(newest):
            if path is None:
                return None
            raise CheckpointError(f"There is no checkpoint at {asked}.")
        if partial:
            self._shared.load(newest)
        else:
            self._restore(newest)
        if newest != asked:
            self._saver.recover_last_checkpoints(checkpoints_up_to_latest(asked))
        self._loaded = newest
        return newest

    def _restore(self, path: str) -> None:
        with self._inside(self._session.graph):
            try:
                checkpoints.restore(self._saver, self._session, path)
            except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError) as error:
                raise CheckpointError(error.message) from error

    @checked(RULES)
    def save_checkpoint(self, path: str | os.PathLike[str] | None = None) -> str:
        """Writes a checkpoint that Estimator, in any of its versions, goes on from.

        As Estimator did, it keeps the last `RunConfig.keep_checkpoint_max` of them.

        Args:
            path: A folder; the checkpoint is `model.ckpt-<global step>` in it, and its latest one.
                None: the program's model_dir.

        Returns:
            The checkpoint's path.
        """
        folder = os.fspath(path) if path is not None else self._estimator.model_dir
        tf.io.gfile.makedirs(folder)
        return self._save(folder)

    def _save(self, folder: str, **more: Any) -> str:
        prefix, step = os.path.join(folder, "model.ckpt"), int(self.global_step.numpy())
        with self._inside(self._session.graph):
            saved: str = self._saver.save(
                self._session, prefix, global_step=step, write_meta_graph=False, **more
            )
            return saved

    def checkpoint_manager(
        self,
        directory: str | os.PathLike[str] | None = None,
        checkpoint_interval: int | None = None,
    ) -> tf.train.CheckpointManager:
        """Returns a `tf.train.CheckpointManager` that reads and writes these checkpoints.

        Args:
            directory: The folder. None: the program's model_dir.
            checkpoint_interval: The number of steps between two checkpoints.
        """
        folder = os.fspath(directory) if directory is not None else self._estimator.model_dir
        return NamedCheckpoints(self, folder, checkpoint_interval)

    # Recording.

    def _input_fn(self, mode: str) -> Callable[..., Any]:
        if mode not in self._input_fns.value:
            name, verb = _ARGUMENTS[mode]
            raise wrong_argument(f"{verb} needs {name}", None, f"Pass {name} to adapt.")
        input_fn: Callable[..., Any] = self._input_fns.value[mode]
        return input_fn

    def _start(self, mode: str) -> None:
        """Records the first mode, makes its variables, and gives them their initial values."""
        if mode == ModeKeys.EVAL:
            recording = self._evaluation.recording
        elif mode == ModeKeys.PREDICT:
            recording = self._prediction
        else:
            recording = self._recorded(mode)
        estimator, scaffold = self._estimator, recording.spec.scaffold
        with self._inside(recording.graph):
            parts = estimator.e2s_parts
            warm_start(parts.warm_start_from)
            shards = parts.options.checkpoint_shards
            add_default_saver(estimator.config, scaffold, shards)
            # A lost TPU takes the variables along: what to restore, the user's loop decides.
            store = OnShared(self._shared)
            creator = ReplaySessionCreator(recording, store=store, max_restarts=0)
            if mode == ModeKeys.TRAIN:
                inside = functools.partial(self._inside, recording.graph)
                self._training = AdaptedTraining(recording, creator, inside)
            else:
                creator.create_session()
        assert creator.session
        self._session, self._saver = creator.session, scaffold.saver

    def _recorded(self, mode: str) -> Recording:
        input_fn = self._input_fn(mode)
        with recording_graph(self._estimator) as graph:
            recording = record_for(self._estimator, mode, input_fn)
            self._note_saver(mode, graph, recording)
            spec = recording.spec
            if spec.scaffold is None:  # of a TPUEstimatorSpec without a scaffold_fn
                recording = dataclasses.replace(
                    recording, spec=spec._replace(scaffold=tf1.train.Scaffold())
                )
            return recording

    def _trained(self) -> AdaptedTraining:
        self._input_fn(ModeKeys.TRAIN)
        assert self._training
        return self._training

    @functools.cached_property
    def _evaluation(self) -> Evaluation:
        input_fn = self._input_fn(ModeKeys.EVAL)
        with recording_graph(self._estimator) as graph:
            evaluation = record_evaluation(self._estimator, graph, input_fn)
            self._note_saver(ModeKeys.EVAL, graph, evaluation.recording)
            return evaluation

    @functools.cached_property
    def _prediction(self) -> Recording:
        return self._recorded(ModeKeys.PREDICT)

    def _note_saver(self, mode: str, graph: tf.Graph, recording: Recording) -> None:
        """Notes that a program reads checkpoints in its own way: averages for weights, say."""
        scaffold = recording.spec.scaffold
        if (scaffold and scaffold.saver) or graph.get_collection(tf1.GraphKeys.SAVERS):
            self._reads_by_itself.add(mode)

    @contextlib.contextmanager
    def _values(self, recording: Recording) -> Iterator[tuple[Any, Any, Any]]:
        """Chooses the source of the values of a recording's variables.

        Yields:
            (the checkpoint to restore, where runs are kept, what gives values): the variables of
            training themselves, unless the program's own Saver would read others in their place.
        """
        mode = recording.spec.mode
        if mode not in self._reads_by_itself or self._training is None:
            yield None, self._stores.value[mode], self._give_values
            return
        with tempfile.TemporaryDirectory() as folder:
            kept = self._saver.last_checkpoints
            self._saver.recover_last_checkpoints([])
            path = self._save(folder, write_state=False)
            self._saver.recover_last_checkpoints(kept)
            yield path, self._own_stores.value[mode], None

    def _give_values(self, session: SavingSession) -> None:
        self._shared.give_values(session, self._loaded)

    @contextlib.contextmanager
    def _inside(self, graph: tf.Graph) -> Iterator[None]:
        with (
            applied(self._estimator.e2s_parts.program.config.session_config),
            legacy_world(),
            graph.as_default(),
        ):
            yield

    def close(self) -> None:
        """Calls the `end` of model_fn's hooks, and frees the input; no step can run any more."""
        if self._training:
            self._training.close()


class _Untracked:
    """Keeps what `tf.Module` shall not look into."""

    def __init__(self, value: Any):
        self.value = value


def _is_all(num_steps: Any) -> bool:
    return num_steps is None or int(num_steps) == -1


def _steps(num_steps: Any, verb: str, default: int | None = None) -> int:
    """`num_steps` as an int."""
    if num_steps is None and default is not None:
        return default
    steps = int(num_steps)
    if steps < 1:
        raise wrong_argument(f"num_steps of {verb} is too few", steps, "Pass at least 1.")
    return steps
