"""A model under check, and its recordings.

Example:

    subject = Subject(model, inputs={"train": input_fn}, modes=("train",), ...)
    recorded = subject.recorded("train")                    # on one device, as with use_tpu=False
    recorded = subject.recorded("train", on_cores=True)     # as one core of `subject.cores` sees it
    [op.type for op in recorded.core_ops]                   # what a core executes
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.metrics.observe import observe_metric_calls
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.user_code import location
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from estimator2strategy.estimator.tpu_config import RunConfig
from estimator2strategy.estimator.tpu_estimator import TPUEstimator
from estimator2strategy.tools.check.levels.check_error import CheckError, of_program, raised_by_user
from estimator2strategy.tools.check.levels.recorded_graph import Recorded
from estimator2strategy.tools.check.request import Mode

tf1 = tf.compat.v1
_MODE_KEYS = {
    Mode.TRAIN: ModeKeys.TRAIN,
    Mode.EVAL: ModeKeys.EVAL,
    Mode.PREDICT: ModeKeys.PREDICT,
}


@dataclasses.dataclass(frozen=True)
class Model:
    """The parts from which estimators for a model are made.

    Attributes:
        model_fn: The user's.
        params: Hyperparameters.
        config: A RunConfig, of a TPUEstimator if `for_tpu`.
        batch_sizes: Mode -> global batch size; None for an Estimator.
        for_tpu: True if it is a TPUEstimator's.
        batch_axis, embedding: As of TPUEstimator.
    """

    model_fn: Callable[..., Any]
    params: Any
    config: Any
    batch_sizes: Mapping[str, int | None] | None = None
    for_tpu: bool = False
    batch_axis: Any = None
    embedding: Any = None

    def estimator(
        self, model_fn: Callable[..., Any], strategy: tf.distribute.Strategy | None
    ) -> Estimator:
        """An estimator of its own, with an empty model_dir.

        Args:
            model_fn: In place of the user's, with the same arguments.
            strategy: Over whose replicas it runs; None: on one device.
        """
        config = self.config.replace(model_dir=tempfile.mkdtemp(prefix="e2s_check_"))
        if not self.for_tpu:
            config = config.replace(train_distribute=None, eval_distribute=None)
            return Estimator(model_fn, config=config, params=self.params or None, strategy=strategy)
        sizes = self.batch_sizes or {}
        return TPUEstimator(
            model_fn,
            config=config,
            params=self.params,
            use_tpu=strategy is not None,
            train_batch_size=sizes[ModeKeys.TRAIN],
            eval_batch_size=sizes.get(ModeKeys.EVAL),
            predict_batch_size=sizes.get(ModeKeys.PREDICT),
            batch_axis=self.batch_axis,
            embedding_config_spec=self.embedding,
            strategy=strategy,
        )


@dataclasses.dataclass(frozen=True)
class Subject:
    """A model under check: the argument of every level.

    Attributes:
        name: As the user named it.
        model: The parts of estimators for it.
        inputs: Mode -> input_fn.
        modes: The modes to check; each has an input.
        cores: The number of cores to emulate.
        checkpoint: A checkpoint, or a folder of them, that it is to fit.
        root: The folder that paths in findings are relative to.
        options: The options of single levels, by name.
    """

    name: str
    model: Model
    inputs: Mapping[Mode, Callable[..., Any]]
    modes: tuple[Mode, ...]
    cores: int = 8
    checkpoint: str | None = None
    root: Path = dataclasses.field(default_factory=Path.cwd)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    _cache: dict[Any, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def strategy(self) -> tf.distribute.Strategy:
        """One over `cores` emulated cores; the same at every call."""
        if "strategy" not in self._cache:
            devices.emulate(self.cores)
            self._cache["strategy"] = devices.emulated_strategy(self.cores)
        return self._cache["strategy"]

    @property
    def batch_size(self) -> int | None:
        """Global, in examples, of training; None: input_fn alone knows."""
        return (self.model.batch_sizes or {}).get(ModeKeys.TRAIN)

    def recorded(
        self,
        mode: Mode,
        *,
        on_cores: bool = False,
        strategy: tf.distribute.Strategy | None = None,
        refused: bool = False,
    ) -> Recorded:
        """The recording of a mode; made once, in this process.

        Args:
            mode: One of `modes`.
            on_cores: As one core of `cores` emulated ones; otherwise on one device.
            strategy: As one replica of this one instead.
            refused: True if a recording is of use that the package refuses to run; see
                `Recorded.refused`.

        Raises:
            CheckError: The program raised an error, or the package refuses it.
        """
        if on_cores and strategy is None:
            strategy = self.strategy()
        key = (mode, id(strategy) if strategy else None)
        if key not in self._cache:
            # With the strategy, whose id is the key.
            self._cache[key] = (_recorded(self, mode, strategy), strategy)
        made: Recorded = self._cache[key][0]
        if made.refused and not refused:
            raise CheckError(f"{mode}: {made.refused}") from made.refused
        return made

    @functools.cached_property
    def saved_variables(self) -> dict[str, list[int]]:
        """Name -> shape of the variables in `checkpoint`; empty without one.

        Raises:
            CheckError: It cannot be read.
        """
        if self.checkpoint is None:
            return {}
        try:
            return dict(tf.train.list_variables(self.checkpoint))
        except (ValueError, tf.errors.OpError) as error:
            raise CheckError(f"--checkpoint {self.checkpoint}: {error}") from error

    def estimator(self, strategy: tf.distribute.Strategy | None = None) -> Estimator:
        """A new estimator for the model, with an empty model_dir."""
        return self.model.estimator(self.model.model_fn, strategy)


def _recorded(subject: Subject, mode: Mode, strategy: tf.distribute.Strategy | None) -> Recorded:
    made: list[Recorded] = []

    @functools.wraps(subject.model.model_fn)
    def noted_model_fn(*args: Any, **kwargs: Any) -> Any:
        graph = tf1.get_default_graph()
        recorded = made[0]
        recorded.features = kwargs.get("features", args[0] if args else None)
        recorded.labels = kwargs.get("labels")
        recorded.start = len(graph.get_operations())
        recorded.spec = subject.model.model_fn(*args, **kwargs)
        recorded.end = len(graph.get_operations())
        return recorded.spec

    what = f"{mode}: {location(subject.model.model_fn)}"
    try:
        estimator = subject.model.estimator(noted_model_fn, strategy)
        with recording_graph(estimator) as graph, observe_metric_calls() as calls:
            made.append(Recorded(mode, strategy is not None, graph, estimator, metric_calls=calls))
            made[0].recording = record_for(estimator, _MODE_KEYS[mode], subject.inputs[mode])
    except (Exception, SystemExit) as error:
        user = raised_by_user(error) or isinstance(error, SystemExit)
        if user or not made or not isinstance(error, Exception):
            raise (of_program(what, error) if user else _refusal(mode, error)) from error
        made[0].refused = error
    return made[0]


def without_absent_modes(subject: Subject) -> tuple[Subject, tuple[str, ...]]:
    """Leaves prediction out of a model that only trains and evaluates; tells so in a line.

    Its model_fn fails for prediction, and its source does not speak of it.
    """
    if Mode.PREDICT not in subject.modes or len(subject.modes) == 1:
        return subject, ()
    try:
        source = inspect.getsource(subject.model.model_fn).lower()
    except (OSError, TypeError):
        return subject, ()
    if "predict" in source or "infer" in source:
        return subject, ()
    try:
        subject.recorded(Mode.PREDICT)
        return subject, ()
    except CheckError:
        modes = tuple(mode for mode in subject.modes if mode != Mode.PREDICT)
        said = "predict: model_fn has no branch for it, so it was not tried; --modes predict does"
        return dataclasses.replace(subject, modes=modes), (said,)


def _refusal(mode: Mode, error: BaseException) -> CheckError:
    return CheckError(f"{mode}: {error}")


def default_config() -> RunConfig:
    """The RunConfig of a model that comes without one."""
    return RunConfig()
