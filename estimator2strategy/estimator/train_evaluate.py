"""`train_and_evaluate`: in one process, or as one of the processes of a `TF_CONFIG` cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.checks import check_no_evaluation_between
from estimator2strategy.estimator.cluster import (
    check_cluster,
    over_parameter_servers,
    training_strategy,
)
from estimator2strategy.estimator.contract_rules import RULES
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.evaluator import (
    ContinuousEvalListener,
    EvaluationListener,
    Evaluator,
    evaluate_until_trained,
)
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.server_jobs import check_server, serve, start_as_worker
from estimator2strategy.estimator.tf_config import TaskType
from estimator2strategy.estimator.training_specs import EvalSpec, TrainSpec, all_hooks

tf1 = tf.compat.v1


@checked(RULES)
def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, list[Any] | None] | None:
    """Trains, and evaluates and exports each checkpoint that training saves.

    In a cluster (`TF_CONFIG`) this process does the part of its task: the chief and the workers
    train, the evaluator evaluates and exports until training is done.

    Args:
        estimator: The Estimator to train.
        train_spec: The training.
        eval_spec: The evaluations. In one process each checkpoint is evaluated as soon as it is
            saved, but those that come sooner than `throttle_secs` after the last one evaluated.

    Returns:
        The results of the last evaluation and a list of what the exporters returned after it, both
        None if there was nothing left to train. None in a cluster.

    Raises:
        TypeError: An argument of another type.
        ValueError: `TF_CONFIG` names a task that cannot be, or that this version cannot do.

    Source: `tf.estimator.train_and_evaluate`, tensorflow_estimator 2.15.
    """
    assert_eval_spec(eval_spec)
    executor = TrainingExecutor(estimator, train_spec, eval_spec)
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR and config.task_id > 0:
        raise ValueError(
            "For distributed training, there can only be one `evaluator` task (with task id 0). "
            f"Given task id {config.task_id}"
        )
    return cast(tuple[dict[str, Any] | None, list[Any] | None] | None, executor.run())


class TrainingExecutor:
    """`train_and_evaluate` with hooks and a listener of the caller's, for programs that have both.

    Args:
        estimator, train_spec, eval_spec: As for `train_and_evaluate`.
        train_hooks: Called beside those of `train_spec`.
        continuous_eval_listener: Asked around each evaluation whether to go on.

    Raises:
        TypeError: An argument of another type.

    Source: `_TrainingExecutor`, tensorflow_estimator 2.15 training.py.
    """

    @checked(RULES)
    def __init__(
        self,
        estimator: Estimator,
        train_spec: TrainSpec,
        eval_spec: EvalSpec | None,
        train_hooks: Iterable[tf1.train.SessionRunHook] | None = None,
        continuous_eval_listener: ContinuousEvalListener | None = None,
    ):
        _check_type("estimator", estimator, Estimator)
        _check_type("train_spec", train_spec, TrainSpec)
        if eval_spec:
            assert_eval_spec(eval_spec, or_none=True)
        watcher = continuous_eval_listener or ContinuousEvalListener()
        if not isinstance(watcher, ContinuousEvalListener):
            raise TypeError("`continuous_eval_listener` must have type `_ContinuousEvalListener`.")
        self._estimator = estimator
        self._train_spec = train_spec
        self._train_hooks = all_hooks(train_hooks)
        self._eval_spec = eval_spec
        self._watcher = watcher

    @property
    def estimator(self) -> Estimator:
        """The estimator that is trained."""
        return self._estimator

    def run(self) -> Any:
        """The part of this process's task; returns and raises as `train_and_evaluate` does.

        Task `foo` is done by `run_foo`, which a subclass may define.
        """
        config = self._estimator.config
        if not config.cluster_spec and config.task_type != TaskType.EVALUATOR:
            tf1.logging.info("Running training and evaluation locally (non-distributed).")
            return self.run_local()
        self._task(config)()
        return None

    def run_chief(self) -> None:
        """Trains, and saves for all."""
        self._check_server()
        self._train(self._train_spec.saving_listeners)

    def run_worker(self) -> None:
        """Trains."""
        self._check_server()
        self._train(saving_listeners=None)

    def run_master(self) -> None:
        """Trains, and evaluates while training waits."""
        self._check_server()
        self._train_and_evaluate(ContinuousEvalListener())

    def run_evaluator(self) -> None:
        """Evaluates checkpoints until that of the last step."""
        eval_spec = assert_eval_spec(self._eval_spec)
        evaluator = Evaluator(self._estimator, eval_spec, self._train_spec.max_steps)
        with self._estimator.e2s_parts.evaluations.kept():
            evaluate_until_trained(evaluator, eval_spec, self._watcher)

    def run_ps(self) -> None:
        """Holds variables until the process is ended."""
        self._check_server()
        config = self._estimator.config
        check_cluster(config, training_strategy(self._estimator))
        serve(config)

    def run_local(self) -> Any:
        """Trains and evaluates in this process; returns as `train_and_evaluate` does."""
        return self._train_and_evaluate(self._watcher)

    def _check_server(self) -> None:
        check_server(self._estimator.config, training_strategy(self._estimator))

    def _train_and_evaluate(self, watcher: ContinuousEvalListener) -> Any:
        """Evaluates while training waits; see `EvaluationListener`."""
        estimator, train_spec = self._estimator, self._train_spec
        check_no_evaluation_between(estimator.e2s_parts.options)
        eval_spec, config = assert_eval_spec(self._eval_spec), estimator.config
        tf1.logging.info(
            "Start train and evaluate loop. The evaluate will happen after every checkpoint. "
            "Checkpoint frequency is determined based on RunConfig arguments: "
            f"save_checkpoints_steps {config.save_checkpoints_steps} or save_checkpoints_secs "
            f"{config.save_checkpoints_secs}."
        )
        evaluator = Evaluator(estimator, eval_spec, train_spec.max_steps)
        listener = EvaluationListener(evaluator, eval_spec.throttle_secs, watcher)
        with estimator.e2s_parts.evaluations.kept():
            self._train((*train_spec.saving_listeners, listener))
        return evaluator.metrics, evaluator.exported

    def _train(self, saving_listeners: Any) -> None:
        config, spec = self._estimator.config, self._train_spec
        if over_parameter_servers(config, training_strategy(self._estimator)):
            start_as_worker(config)
        self._estimator.train(
            input_fn=spec.input_fn,
            max_steps=spec.max_steps,
            hooks=[*spec.hooks, *self._train_hooks],
            saving_listeners=saving_listeners,
        )

    def _task(self, config: RunConfig) -> Callable[[], Any]:
        """The work of this process's task.

        Raises:
            ValueError: `TF_CONFIG` names none, or one that there is not.
        """
        task_type = config.task_type
        if not task_type:
            raise ValueError(
                "`estimator.config` must have task_type set. This usually means TF_CONFIG "
                "environment is not set correctly."
            )
        if task_type == "local":
            raise ValueError(
                "`task.type` in TF_CONFIG cannot be `local`. Leaving `cluster` and `task` "
                "properties in TF_CONFIG absent triggers train and evaluate `Estimator` locally "
                "(non-distributed)."
            )
        tasks = {
            name.removeprefix("run_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("run_") and name != "run_local" and callable(getattr(self, name))
        }
        if task_type not in tasks:
            raise ValueError(
                f"Task type {task_type} is not supported. Supported task types are {list(tasks)}"
            )
        return cast(Callable[[], Any], tasks[task_type])


def assert_eval_spec(eval_spec: Any, *, or_none: bool = False) -> EvalSpec:
    """`eval_spec`; TypeError if it is no `EvalSpec`."""
    _check_type("eval_spec", eval_spec, EvalSpec, "be either `None` or " if or_none else "")
    return cast(EvalSpec, eval_spec)


def _check_type(name: str, value: Any, expected: type, otherwise: str = "") -> None:
    if not isinstance(value, expected):
        raise TypeError(
            f"`{name}` must {otherwise}have type `tf.estimator.{expected.__name__}`. "
            f"Got: {type(value)}"
        )
