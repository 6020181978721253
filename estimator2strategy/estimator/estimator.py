"""`Estimator`: the contract of `tf.estimator.Estimator`, on recorded and replayed graphs."""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import behavior, callers
from estimator2strategy.engine.legacy_code import is_of_tf115
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.parameter_servers import one_process
from estimator2strategy.engine.record.host_call import LOSS, metric_pairs
from estimator2strategy.engine.record.model_program import ModelProgram, ReplacedCalls
from estimator2strategy.engine.record.on_host import OnHost
from estimator2strategy.engine.record.on_replicas import OnReplicas
from estimator2strategy.engine.record.recording import Placement
from estimator2strategy.engine.record.under_jax import UnderJax
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime import evaluation, jax_hosts, prediction, training
from estimator2strategy.engine.runtime.checkpoints import step_in
from estimator2strategy.engine.runtime.evaluation_cache import EvaluationCache
from estimator2strategy.engine.runtime.gc_pause import young_until_first
from estimator2strategy.engine.runtime.latest_checkpoint import latest_checkpoint, using
from estimator2strategy.engine.runtime.model_dir import clear_if_free, held_for_training
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.runtime.requested_job import Runtime
from estimator2strategy.engine.runtime.session_config import applied_to_each
from estimator2strategy.engine.runtime.tpu_system import start_for
from estimator2strategy.engine.runtime.training_options import (
    TrainingOptions,
    jax_target_of,
    uses_jax,
)
from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.checks import (
    check_cores_of_several_hosts,
    check_job_of_jax,
    check_no_strategy_under_jax,
    check_not_overridden,
    check_steps,
    check_trains,
    checked_hooks,
    checked_listeners,
    checked_options,
    checked_path,
    checked_predictions,
    no_variable,
    verify_model_fn_args,
)
from estimator2strategy.estimator.cluster import (
    check_cluster,
    check_evaluation,
    over_parameter_servers,
    worker_of,
)
from estimator2strategy.estimator.contract_rules import RULES
from estimator2strategy.estimator.estimator_parts import EstimatorParts
from estimator2strategy.estimator.estimator_recording import (
    record_evaluation,
    record_for,
    recording_graph,
    replaceable,
    replaced,
)
from estimator2strategy.estimator.exporting import Exporting
from estimator2strategy.estimator.moved_arguments import in_chosen_runtime, refuses_moved
from estimator2strategy.estimator.run_config import RunConfig, completed
from estimator2strategy.estimator.server_jobs import train_over_parameter_servers
from estimator2strategy.estimator.specs import EstimatorSpec
from estimator2strategy.estimator.warm_start import settings_from, warm_start

tf1 = tf.compat.v1
Hook: TypeAlias = tf1.train.SessionRunHook
Own = TypeVar("Own", bound="Estimator")


class Estimator(Exporting):
    """Trains, evaluates and serves a model that a legacy `model_fn` describes.

    Args:
        model_fn: `model_fn(features, labels, mode, params, config) -> EstimatorSpec`; all but
            `features` are optional. It is called once per `train`, `evaluate` or `predict`, in a
            v1 graph of its own.
        model_dir: Where checkpoints and events go. Default: `config.model_dir`, else a new
            temporary folder.
        config: A RunConfig.
        params: Hyperparameters, handed to model_fn and input_fn (each gets a deep copy).
        warm_start_from: A checkpoint, a folder of checkpoints, a SavedModel, or WarmStartSettings.
        strategy: Train on the replicas of this `tf.distribute.Strategy`, as with
            `RunConfig(train_distribute=...)`: each replica takes the next batch of input_fn.
        options: A TrainingOptions: how `train` runs, beyond what the original could be told.

    Raises:
        TypeError: `options` is not a TrainingOptions.
        ValueError: model_fn's arguments are not the above; a subclass overrides a method.

    Source: `tf.estimator.Estimator`, tensorflow_estimator 2.15.
    """

    # True in the classes of TF 1.15's `tf.estimator`; see `tf1/facade/stand_ins.py`.
    _of_tf115 = False

    @refuses_moved
    @checked(RULES)
    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec] | None,
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: dict[str, Any] | None = None,
        warm_start_from: Any = None,
        *,
        strategy: tf.distribute.Strategy | None = None,
        options: TrainingOptions | None = None,
    ):
        # As the original calls it: programs put another function in its place, of any kind.
        type(self)._assert_members_are_not_overridden(self)
        self._config = completed(config, model_dir)
        tf1.logging.info("Using config: %s", vars(self._config))
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        verify_model_fn_args(model_fn, params)
        self._model_fn = model_fn
        self._strategy = strategy or self._config.train_distribute
        self._training_options = checked_options(options)
        # Subclasses of programs read these two.
        self._session_config, self._model_dir = self._config.session_config, self._config.model_dir
        self._params = copy.deepcopy(params or {})
        self._warm_start_settings = settings_from(warm_start_from)
        self._evaluations, self._replays = EvaluationCache(), ReplayCache()
        self._tf115 = (
            self._of_tf115
            or behavior.is_entered()
            or is_of_tf115(model_fn)
            or callers.makes_estimator()
        )

    def __getstate__(self) -> dict[str, Any]:
        """The attributes without traced functions, which cannot leave the process."""
        return {**vars(self), "_replays": None, "_evaluations": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _replays=ReplayCache(), _evaluations=EvaluationCache())

    @property
    def e2s_parts(self) -> EstimatorParts:
        """All that the rest of this package may know of an Estimator."""
        calls = ReplacedCalls(
            replaced(self._call_input_fn),
            replaced(self._call_model_fn),
            replaced(self._create_and_assert_global_step),
        )
        return EstimatorParts(
            ModelProgram(self._model_fn, self._params, self._config, EstimatorSpec, calls),
            self._strategy,
            self._training_options,
            self._warm_start_settings,
            self._tf115,
            self._placement,
            self._eval_stops,
            self._evaluations,
        )

    def e2s_copy(self: Own, **parts: Any) -> Own:
        """A copy with other parts, which has traced nothing yet.

        Args:
            parts: Any of `model_fn`, `config` and `strategy`; for a TPUEstimator also of `use_tpu`
                and `batch_sizes`.
        """
        copied = copy.copy(self)
        vars(copied).update({f"_{name}": part for name, part in parts.items()})
        return copied

    @property
    def model_dir(self) -> str:
        assert self._config.model_dir  # `completed` saw to it
        return self._config.model_dir

    @property
    def config(self) -> RunConfig:
        """A copy of the settings, with model_dir and session_config filled in."""
        return copy.deepcopy(self._config)

    @property
    def params(self) -> dict[str, Any]:
        """A copy of the hyperparameters."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """`model_fn(features, labels, mode, config)`, with `params` bound."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the folder in which `evaluate(name=name)` writes its events.

        Args:
            name: As for `evaluate`; None: the folder is `<model_dir>/eval`.
        """
        return os.path.join(self.model_dir, f"eval_{name}" if name else "eval")

    def latest_checkpoint(self) -> str | None:
        """Returns the path of the latest complete checkpoint in `model_dir`; None: there is none.

        Raises:
            CheckpointError: There are checkpoints, but none that can be used.
        """
        return latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """Returns the names of all variables in the latest checkpoint.

        Raises:
            ValueError: There is no checkpoint yet.
        """
        names = using(self._trained(), self.latest_checkpoint, tf.train.list_variables)[1]
        return [name for name, _ in names]

    def get_variable_value(self, name: str) -> np.ndarray:
        """Returns the value of a variable in the latest checkpoint, in its shape and dtype.

        Args:
            name: The name of the variable in the checkpoint, such as `dense/kernel`.

        Raises:
            ValueError: There is no checkpoint yet, or it has no variable of that name.
        """
        load = functools.partial(tf.train.load_variable, name=name)
        try:
            return cast(np.ndarray, using(self._trained(), self.latest_checkpoint, load)[1])
        except tf.errors.NotFoundError as error:
            raise no_variable(name, self.get_variable_names()) from error

    def _trained(self) -> str:
        path = self.latest_checkpoint()
        if not path:
            raise ValueError(f"Could not find trained model in model_dir: {self.model_dir}.")
        return path

    @checked(RULES)
    @in_chosen_runtime
    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Hook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[tf1.train.CheckpointSaverListener] | None = None,
    ) -> Estimator:
        """Trains until `steps` more steps, or `max_steps` in all, are done or the input ends.

        Args:
            input_fn: Returns a Dataset of (features, labels), or such a pair of (nested) tensors.
            hooks: Called around each step; a hook that TensorFlow does not ship is shown every
                step, which costs speed.
            steps: Number of steps from the latest checkpoint on.
            max_steps: Global step at which to stop. Nothing happens if it is reached already.
            saving_listeners: Called before and after each checkpoint.

        Returns:
            self

        Raises:
            ValueError: Both `steps` and `max_steps` are given, or one is not positive.
            ModelDirInUseError: Another process trains in `model_dir`.
            CheckpointError: There are checkpoints, but none that can be used.
        """
        self._check_task()
        check_steps(steps, max_steps)
        if max_steps is not None and max_steps <= self._global_step():
            tf1.logging.info("Skipping training since max_steps has already saved.")
            if self._config.is_chief:
                clear_if_free(self.model_dir)
            return self
        listeners = checked_listeners(saving_listeners)
        all_hooks = [*checked_hooks(hooks), *self._train_stops(steps, max_steps)]
        if over_parameter_servers(self._config, self._strategy):
            loss = train_over_parameter_servers(
                self.e2s_parts, self.latest_checkpoint, input_fn, all_hooks, listeners
            )
            tf1.logging.info("Loss for final step: %s.", loss)
            return self
        alone = held_for_training(self.model_dir) if self._config.is_chief else nullcontext()
        with alone, recording_graph(self):
            recorded = record_for(self, ModeKeys.TRAIN, input_fn)
            warm_start(self._warm_start_settings, self.latest_checkpoint())
            options = self._training_options
            if one_process.collects_gradients(recorded.graph):
                loss = one_process.train(
                    recorded, self._config, all_hooks, listeners, options.jit_compile
                )
            else:
                loss = training.train(
                    recorded, self._config, all_hooks, listeners, options, self._replays
                )
        jax_hosts.meet("the end of a training")  # so its last checkpoint is there for all
        tf1.logging.info("Loss for final step: %s.", loss)
        return self

    @checked(RULES)
    @in_chosen_runtime
    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint.

        Args:
            input_fn: As for `train`.
            steps: Number of batches; None: until the input ends.
            hooks: Called around each batch.
            checkpoint_path: Default: the latest in `model_dir`; if there is none, the model is
                evaluated with its initial values.
            name: Results go to `eval_<name>`.

        Returns:
            Metric name -> value (numpy scalars), with `loss` (mean over batches) and
            `global_step`.

        Raises:
            ValueError: `steps` is not positive; a metric is called `global_step`.
        """
        checkpoint_path, look_up = self._to_restore(checkpoint_path, "evaluate")
        with recording_graph(self) as graph:
            all_hooks = [*checked_hooks(hooks), *self._eval_stops(steps)]
            watching = all_hooks if checkpoint_path else None
            recorded = record_evaluation(self, graph, input_fn, watching)
            warm_start(self._warm_start_settings, checkpoint_path)
            results = recorded.run(checkpoint_path, all_hooks, store=self._replays, look_up=look_up)
            if jax_hosts.writes_files():
                evaluation.write_results(self.eval_dir(name), results, recorded.restored_from)
        return results

    @checked(RULES)
    def keras_metrics(self, input_fn: Callable[..., Any]) -> dict[str, Any]:
        """The metrics that model_fn declares for evaluation, as Keras metrics to carry over.

        Calls input_fn and model_fn once, for evaluation; no batch is taken, nothing is restored.

        Args:
            input_fn: As for `evaluate`.

        Returns:
            Metric name -> a fresh metric. What one `tf.metrics` function returned is the metric of
            `keras_metric_for`: its `update_state` takes what the function took, so `model.compile`
            takes it. Any other is a `ReplayedMetric`, whose `update_state` takes the values of the
            recorded tensors `metric.inputs`. What neither can be is left out, with a warning.

        Raises:
            ValueError: As `evaluate`, for what it finds before the first batch.
        """
        # Keras takes longer to import than all else here.
        from estimator2strategy.engine.metrics.objects import metric_objects
        from estimator2strategy.engine.metrics.observe import observe_metric_calls

        with recording_graph(self) as graph, observe_metric_calls() as calls:
            pairs = metric_pairs(record_for(self, ModeKeys.EVAL, input_fn).spec)
            del pairs[LOSS]
            return metric_objects(graph, pairs, calls)

    @checked(RULES)
    @in_chosen_runtime
    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Sequence[str] | str | None = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields predictions, lazily: nothing is computed before the first example is asked for.

        Small batches may be computed some at a time, unless a hook is called around each, or
        Python (`from_generator`, `py_func`) makes the input or the predictions.

        Args:
            input_fn: As for `train`; labels are ignored.
            predict_keys: Which of the predictions to yield.
            hooks: Called around each batch.
            checkpoint_path: Default: the latest in `model_dir`.
            yield_single_examples: False: yield whole batches.

        Yields:
            Numpy values of the shape of `EstimatorSpec.predictions` without its batch dimension.

        Raises:
            ValueError: There are no predictions, their batch sizes differ, or `predict_keys`
                matches nothing.
        """
        hooks = checked_hooks(hooks)
        checkpoint_path, look_up = self._to_restore(checkpoint_path, "predict")
        with recording_graph(self):
            recorded = record_for(self, ModeKeys.PREDICT, input_fn)
            warm_start(self._warm_start_settings, checkpoint_path)
            predictions = checked_predictions(recorded.spec.predictions, self._model_fn)
            predictions = prediction.selected(predictions, predict_keys)
        predicted = prediction.batches(
            recorded, predictions, checkpoint_path, hooks, self._replays, look_up=look_up
        )
        batches = applied_to_each(self._config.session_config, young_until_first(predicted))
        yield from prediction.examples(batches) if yield_single_examples else batches

    # The parts of a recording.

    def _placement(self, mode: str) -> Placement:
        """The devices and processes that `mode` runs on; a TPU among them has been started."""
        if uses_jax(self._training_options):
            check_no_strategy_under_jax(self._strategy or self._config.eval_distribute)
            check_cores_of_several_hosts(mode)
        target = jax_target_of(self._training_options, most=1, here=True)
        if target is not None:
            return UnderJax(OnHost(), target)
        if mode == ModeKeys.TRAIN and (worker := worker_of(self._config, self._strategy)):
            return worker
        strategies = {ModeKeys.TRAIN: self._strategy, ModeKeys.EVAL: self._config.eval_distribute}
        strategy = strategies.get(mode)
        if mode == ModeKeys.EVAL:
            check_evaluation(strategy)
        # One device runs without its strategy; one core of a TPU does not.
        if strategy is None or (strategy.num_replicas_in_sync == 1 and not is_tpu(strategy)):
            return OnHost(under_strategy=strategy is not None)
        start_for(strategy)
        return OnReplicas(strategy)

    # How the program's functions are called. Subclasses of programs replace and call these.

    @replaceable
    def _create_and_assert_global_step(self, graph: tf.Graph) -> tf.Variable:
        """The global step of a graph, made there."""
        return tf1.train.create_global_step(graph)

    @replaceable
    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        training = mode == ModeKeys.TRAIN
        worker = worker_of(self._config, self._strategy) if training else None
        more = {"input_context": worker.input_context} if worker else {}
        return self.e2s_parts.program.plain.call_input_fn(input_fn, mode, **more)

    @replaceable
    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        call = self.e2s_parts.program.plain.call_model_fn
        return cast(EstimatorSpec, call(features, labels, mode, config))

    def _train_stops(self, steps: int | None, max_steps: int | None) -> list[Hook]:
        if steps is None and max_steps is None:
            return []
        return [tf1.train.StopAtStepHook(steps, max_steps)]

    def _eval_stops(self, steps: int | None) -> list[Hook]:
        return evaluation.stops(steps)

    def _to_restore(
        self, asked: Any, verb: str
    ) -> tuple[str | None, Callable[[], str | None] | None]:
        """Returns (checkpoint to restore, function that finds another one if it is removed)."""
        if path := checked_path(asked):
            return path, None
        path = self.latest_checkpoint()
        if not path:
            tf1.logging.info(
                f"Could not find trained model in model_dir: {self.model_dir}, running "
                f"initialization to {verb}."
            )
        return path, self.latest_checkpoint

    def _back_to_tensorflow(self) -> None:
        options, self._replays = self._training_options, ReplayCache()
        self._training_options = dataclasses.replace(options, runtime=Runtime.TENSORFLOW)

    def _global_step(self) -> int:
        path = self.latest_checkpoint()
        return using(path, self.latest_checkpoint, step_in)[1] if path else 0

    def _check_task(self) -> None:
        check_trains(self._config)
        if not uses_jax(self._training_options):
            check_job_of_jax()
            check_cluster(self._config, self._strategy)

    def _assert_members_are_not_overridden(self) -> None:
        """Refuses a subclass that overrides members; programs may replace this method."""
        check_not_overridden(type(self), Estimator)
