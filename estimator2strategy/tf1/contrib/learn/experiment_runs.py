"""`Experiment` and `learn_runner` of `tf.contrib.learn`: they drive an Estimator."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import tensorflow as tf

from estimator2strategy import estimator as core
from estimator2strategy.estimator.server_jobs import serve
from estimator2strategy.tf1.contrib.learn.early_estimator import Estimator, MetricSpec
from estimator2strategy.tf1.contrib.learn.exports import ExportStrategy
from estimator2strategy.tf1.contrib.learn.monitor_bases import replace_monitors_with_hooks
from estimator2strategy.tf1.contrib.training.hyperparameters import HParams

_v1 = tf.compat.v1


class _AfterSave(_v1.train.CheckpointSaverListener):
    """Calls a function after each checkpoint; `result` is that of the last call."""

    def __init__(self, call: Callable[[], Any]):
        self._call = call
        self.result: Any = None

    def after_save(self, session: tf.compat.v1.Session, global_step_value: int) -> None:
        self.result = self._call()


class _Validation(_v1.train.SessionRunHook):
    """Evaluates the latest checkpoint every so many steps, if it is a new one.

    It looks at the steps and as seldom as TensorFlow 1.15's `ValidationMonitor`: at the first step
    from `every` on, then `every` steps later; and not before `interval` seconds after it last did.
    """

    def __init__(self, evaluate: Callable[[], Any], folder: str, every: int, interval: float):
        self._evaluate, self._folder = evaluate, folder
        self._every, self._interval = every, interval
        self._seen: str | None = None
        self._looked: float | None = None

    def begin(self) -> None:
        self._active = 0
        self._step: int | None = None

    def before_run(self, run_context: Any) -> Any:
        step = _v1.train.get_global_step()
        if self._step is None:
            self._step = int(run_context.session.run(step)) + 1
        return _v1.train.SessionRunArgs(step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        assert self._step is not None
        if self._step >= self._active + self._every:
            self._active = self._step
            self._look()
        self._step = int(run_values.results) + 1

    def _look(self) -> None:
        now = time.time()
        if self._looked is not None and now - self._looked <= self._interval:
            return
        self._looked = now
        latest = _v1.train.latest_checkpoint(self._folder)
        if latest is not None and latest != self._seen:
            self._seen = latest
            self._evaluate()


class Experiment:
    """Trains, evaluates and exports an Estimator.

    Args:
        estimator: A `tf.estimator.Estimator` or `learn.Estimator`.
        train_input_fn: Input of training.
        eval_input_fn: Input of evaluation.
        eval_metrics: Dict of `MetricSpec`, for a `learn.Estimator`.
        train_steps: Step at which training ends.
        eval_steps: Batches of an evaluation.
        train_monitors: Hooks of training, or monitors.
        eval_hooks: Hooks of evaluation.
        local_eval_frequency: `min_eval_frequency` of `local_run`.
        eval_delay_secs: Seconds before `evaluate` starts.
        continuous_eval_throttle_secs: Seconds from one continuous evaluation to the next.
        min_eval_frequency: Steps after which `train_and_evaluate` looks for a new checkpoint to
            evaluate, 1 if None; 0: it evaluates at the end only.
        delay_workers_by_global_step: Only for several workers, which are not supported here.
        export_strategies: One `ExportStrategy`, or several.
        train_steps_per_iteration: Of `continuous_train_and_eval`.
        checkpoint_and_export: True if `train_and_evaluate` exports after every checkpoint.
        saving_listeners: Of training.
        check_interval_secs: Seconds that must pass until `train_and_evaluate` looks again.

    Raises:
        ValueError: Arguments contradict each other.
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: Mapping[str, MetricSpec] | None = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Any = None,
        eval_hooks: Any = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Any = None,
        check_interval_secs: float = 5,
    ):
        if not isinstance(estimator, core.Estimator):
            raise ValueError(
                "`estimator` must implement `tf.contrib.learn.Evaluable` "
                "or `tf.estimator.Estimator`."
            )
        if eval_metrics is not None and not isinstance(estimator, Estimator):
            raise ValueError(
                "`eval_metrics` must be `None` with `tf.estimator.Estimator`. "
                "Use `eval_metric_ops` in `tf.estimator.EstimatorSpec` instead."
            )
        if train_steps_per_iteration is not None and not isinstance(train_steps_per_iteration, int):
            raise ValueError("`train_steps_per_iteration` must be an integer.")
        self.estimator = estimator
        self.eval_metrics = eval_metrics
        self.train_steps = train_steps
        self.eval_steps = eval_steps
        self._train_input_fn = train_input_fn
        self._eval_input_fn = eval_input_fn
        self._train_monitors = list(train_monitors or ())
        self._eval_hooks = list(eval_hooks or ())
        self._local_eval_frequency = local_eval_frequency
        self._eval_delay_secs = eval_delay_secs
        self._throttle_secs = continuous_eval_throttle_secs
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._train_steps_per_iteration = train_steps_per_iteration
        self._checkpoint_and_export = checkpoint_and_export
        self._saving_listeners = list(saving_listeners or ())
        self._check_interval_secs = check_interval_secs
        self.reset_export_strategies(export_strategies)

    def extend_train_hooks(self, additional_hooks: Iterable[Any]) -> None:
        """More hooks of training."""
        self._train_monitors.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> Any:
        """Other strategies; returns the old ones."""
        old = getattr(self, "_export_strategies", ())
        new = new_export_strategies or ()
        self._export_strategies = (new,) if isinstance(new, ExportStrategy) else tuple(new)
        for strategy in self._export_strategies:
            if not isinstance(strategy, ExportStrategy):
                raise ValueError(
                    "`export_strategies` must be an ExportStrategy, an iterable of "
                    f"ExportStrategy, or `None`, found {strategy}."
                )
        return old

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains up to `train_steps`."""
        time.sleep(delay_secs or 0)
        return self._train(max_steps=self.train_steps)

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """Evaluates once, as `name` or "one_pass"."""
        time.sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        return self._evaluate(name or "one_pass")

    def train_and_evaluate(self) -> tuple[Any, list[Any]]:
        """Trains, evaluates, exports; returns the last evaluation, and what the strategies did."""
        config = self.estimator.config
        saves = config.save_checkpoints_secs or config.save_checkpoints_steps
        if self._checkpoint_and_export and saves:
            listener = _AfterSave(self._evaluate_and_export)
            self._train(max_steps=self.train_steps, listeners=[listener])
            return cast(tuple[Any, list[Any]], listener.result)
        hooks, listeners = [], []
        if every := self._min_eval_frequency:
            folder = self.estimator.model_dir
            hooks = [_Validation(self._evaluate, folder, every, self._check_interval_secs)]
            # With a listener, a step does not end before its checkpoint is written.
            listeners = [_v1.train.CheckpointSaverListener()] if saves else []
        self._train(max_steps=self.train_steps, hooks=hooks, listeners=listeners)
        return self._evaluate_and_export()

    def local_run(self) -> tuple[Any, list[Any]]:
        """`train_and_evaluate` with `local_eval_frequency`."""
        before = self._min_eval_frequency
        self._min_eval_frequency = self._local_eval_frequency or 0
        try:
            return self.train_and_evaluate()
        finally:
            self._min_eval_frequency = before

    def test(self) -> Any:
        """One step of training, one batch of evaluation, one export."""
        self._train(steps=1)
        result = self._evaluate("one_pass", steps=1)
        self._export(result)
        return result

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Callable[..., Any] | None = None,
        name: str = "continuous",
    ) -> None:
        """Evaluates and exports each new checkpoint, until that of `train_steps`."""
        predicate = _predicate(continuous_eval_predicate_fn)
        time.sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        pause = self._throttle_secs if throttle_delay_secs is None else throttle_delay_secs
        previous: str | None = None
        result: Any = None
        while predicate(result, previous) and not self._has_trained(result):
            start = time.time()
            latest = _v1.train.latest_checkpoint(self.estimator.model_dir)
            if latest is None or (evaluate_checkpoint_only_once and latest == previous):
                result = {}
            else:
                result = self._evaluate(name, checkpoint_path=latest) or {}
                self._export(result, latest)
                previous = latest
                if self._has_trained(result):
                    return
            time.sleep(max(0, pause - (time.time() - start)))

    def continuous_train_and_eval(
        self, continuous_eval_predicate_fn: Callable[..., Any] | None = None
    ) -> tuple[Any, Any]:
        """Trains and evaluates in turns, until `train_steps` or until the function says so."""
        predicate = _predicate(continuous_eval_predicate_fn)
        steps = self._train_steps_per_iteration
        if steps is None:
            steps = 1000 if self.train_steps is None else int(self.train_steps / 10)
        result = exported = latest = None
        while predicate(result, latest) and not self._has_trained(result):
            self._train(steps=steps)
            latest = _v1.train.latest_checkpoint(self.estimator.model_dir)
            result = self._evaluate("one_pass", checkpoint_path=latest)
            exported = self._export(result)
        return result, exported

    def run_std_server(self) -> None:
        """The work of a parameter server of `TF_CONFIG`: it never returns."""
        serve(self.estimator.config)

    def _train(self, listeners: Iterable[Any] = (), hooks: Iterable[Any] = (), **until: Any) -> Any:
        return self.estimator.train(
            self._train_input_fn,
            hooks=replace_monitors_with_hooks([*self._train_monitors, *hooks], self.estimator),
            saving_listeners=[*self._saving_listeners, *listeners] or None,
            **until,
        )

    def _evaluate(
        self, name: str | None = None, steps: int | None = None, checkpoint_path: str | None = None
    ) -> Any:
        metrics = {"metrics": self.eval_metrics} if isinstance(self.estimator, Estimator) else {}
        return self.estimator.evaluate(
            input_fn=self._eval_input_fn,
            steps=steps or self.eval_steps,
            name=name,
            checkpoint_path=checkpoint_path,
            hooks=self._eval_hooks,
            **metrics,
        )

    def _evaluate_and_export(self) -> tuple[Any, list[Any]]:
        result = self._evaluate()
        return result, self._export(result)

    def _export(self, eval_result: Any, checkpoint_path: str | None = None) -> list[Any]:
        base = os.path.join(self.estimator.model_dir, "export")
        return [
            strategy.export(
                self.estimator, os.path.join(base, strategy.name), checkpoint_path, eval_result
            )
            for strategy in self._export_strategies
        ]

    def _has_trained(self, result: Any) -> bool:
        return bool(result and self.train_steps and result["global_step"] >= self.train_steps)


def _predicate(function: Callable[..., Any] | None) -> Callable[[Any, Any], bool]:
    """A function of (result, checkpoint path): True if evaluation goes on."""
    if function is None:
        return lambda result, path: True
    if not callable(function):
        raise ValueError("`continuous_eval_predicate_fn` must be a callable, or None.")
    if "checkpoint_path" in inspect.signature(function).parameters:
        return lambda result, path: function(result, checkpoint_path=path)
    return lambda result, path: function(result)


class learn_runner:
    """The module `tf.contrib.learn.learn_runner`."""

    @staticmethod
    def run(
        experiment_fn: Callable[..., Any],
        output_dir: str | None = None,
        schedule: str | None = None,
        run_config: Any = None,
        hparams: Any = None,
    ) -> Any:
        """Makes an Experiment and runs its method `schedule`.

        By default that is `train_and_evaluate`; in a cluster of several tasks, a worker's is
        `train`, and a parameter server's `run_std_server`. `experiment_fn` takes `output_dir`, or
        a `RunConfig` with a `model_dir` and an `HParams` or None, by position.

        Raises:
            ValueError: Not exactly one of `output_dir` and `run_config` is given, or there is no
                such method.
            TypeError: `experiment_fn` is no function, or makes no Experiment.
        """
        if output_dir is not None and run_config is not None:
            raise ValueError("Cannot provide both `output_dir` and `run_config`")
        if output_dir is None and run_config is None:
            raise ValueError("Must set value for `output_dir` or `run_config`")
        if not callable(experiment_fn):
            raise TypeError(f'Experiment builder "{experiment_fn}" is not callable.')
        if run_config is not None:
            experiment = _configured(experiment_fn, run_config, hparams)
        elif hparams is not None:
            raise ValueError("Must set `hparams` as None for `experiment_fn` with `output_dir`.")
        else:
            experiment = experiment_fn(output_dir=output_dir)
        if not isinstance(experiment, Experiment):
            raise TypeError(
                "Experiment builder did not return an Experiment instance, got "
                f"{type(experiment)} instead."
            )
        schedule = schedule or _default_schedule(run_config or experiment.estimator.config)
        task = getattr(experiment, schedule, None)
        if task is None:
            raise ValueError(f"Schedule references non-existent task {schedule}")
        if not callable(task):
            raise TypeError(f"Schedule references non-callable member {schedule}")
        return task()

    @staticmethod
    def tune(experiment_fn: Callable[..., Any], tuner: Any) -> None:
        """Lets a tuner run a trial of the Experiment, as often as it has a next one.

        Raises:
            ValueError: The tuner gives no `HParams`.
        """

        def trial(run_config: Any, hparams: Any) -> Any:
            if hparams is None:
                raise ValueError("`hparams` cannot be `None`.")
            return _configured(experiment_fn, run_config, hparams)

        while tuner.next_trial():
            tuner.run_experiment(trial)


def _configured(experiment_fn: Callable[..., Any], run_config: Any, hparams: Any) -> Any:
    """Calls the program's function by position: its arguments have names of their own."""
    if not run_config.model_dir:
        raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
    if hparams is not None and not isinstance(hparams, HParams):
        raise ValueError("`hparams` must be `HParams` instance")
    return experiment_fn(run_config, hparams)


_SCHEDULES = {"master": "train_and_evaluate", "ps": "run_std_server", "worker": "train"}


def _default_schedule(config: Any) -> str:
    """The method that a task of `TF_CONFIG` runs where the program names none."""
    spec = config.cluster_spec
    tasks = [task for job in spec.jobs for task in spec.job_tasks(job)] if spec else []
    if len(tasks) <= 1:
        return "train_and_evaluate"
    if config.task_type not in _SCHEDULES:
        raise ValueError(f"No default schedule for task type: {config.task_type}")
    return _SCHEDULES[config.task_type]
