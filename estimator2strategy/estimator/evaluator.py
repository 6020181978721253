"""Evaluates and exports each new checkpoint of an Estimator, while it trains or beside it."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.runtime import profiling
from estimator2strategy.engine.runtime.checkpoints import is_there
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.training_specs import EvalSpec

tf1 = tf.compat.v1
GLOBAL_STEP = tf1.GraphKeys.GLOBAL_STEP

# An evaluator that waits for a checkpoint logs the same line once in ten minutes.
_SECONDS_BETWEEN_WARNINGS = 600


class EvalStatus:
    """The outcomes of an evaluation."""

    EVALUATED = "evaluated"
    MISSING_CHECKPOINT = "missing checkpoint"
    NO_NEW_CHECKPOINT = "no new checkpoint"


class EvalResult(NamedTuple):
    """The outcome of an evaluation: `metrics` and `checkpoint_path` where it is `EVALUATED`."""

    status: str
    metrics: dict[str, Any] | None = None
    checkpoint_path: str | None = None


class ContinuousEvalListener:
    """Is asked before and after each evaluation whether to go on; programs derive theirs from it.

    Source: `_ContinuousEvalListener`, tensorflow_estimator 2.15 training.py.
    """

    def before_eval(self) -> bool:
        """Returns False to end training, or the evaluator, without this evaluation."""
        return True

    def after_eval(self, eval_result: EvalResult) -> bool:
        """Returns False to end training, or the evaluator, after this evaluation."""
        del eval_result
        return True


class Evaluator:
    """Evaluates the latest checkpoint, when there is a new one, and calls the exporters.

    Args:
        estimator: The Estimator that writes the checkpoints.
        eval_spec: The settings of evaluation and export.
        max_steps: Global step of the final export; None: no export is the final one.

    Attributes:
        metrics: Results of the last evaluation; None before the first.
        exported: The results of the exporters after it.

    Source: `_TrainingExecutor._Evaluator`, tensorflow_estimator 2.15 training.py.
    """

    def __init__(self, estimator: Estimator, eval_spec: EvalSpec, max_steps: int | None):
        self._estimator = estimator
        self._spec = eval_spec
        self._max_steps = max_steps
        self._evaluated: str | None = None
        self._warned = -float(_SECONDS_BETWEEN_WARNINGS)
        self.metrics: dict[str, Any] | None = None
        self.exported: list[Any] | None = None

    def done(self) -> bool:
        """True if the checkpoint with which training ends has been evaluated."""
        return bool(
            self.metrics and self._max_steps and self.metrics[GLOBAL_STEP] >= self._max_steps
        )

    def evaluate_and_export(self) -> EvalResult:
        """Evaluates, unless there is no checkpoint or no new one."""
        path = self._estimator.latest_checkpoint()
        if not path:
            self._warn(
                "Estimator is not trained yet. Will start an evaluation when a checkpoint is ready."
            )
            return EvalResult(EvalStatus.MISSING_CHECKPOINT)
        if path == self._evaluated:
            self._warn(
                "No new checkpoint ready for evaluation. Skip the current evaluation pass as "
                "evaluation results are expected to be same for the same checkpoint."
            )
            return EvalResult(EvalStatus.NO_NEW_CHECKPOINT)
        before = self.metrics, self.exported
        try:
            metrics = self._estimator.evaluate(
                input_fn=self._spec.input_fn,
                steps=self._spec.steps,
                name=self._spec.name,
                checkpoint_path=path,
                hooks=self._spec.hooks,
            )
            self.metrics = _checked_metrics(metrics)
            self.exported = self._export(path, self.metrics)
        except (ValueError, tf.errors.OpError):
            if is_there(path):
                raise
            # Another process trains, and keeps `keep_checkpoint_max` checkpoints.
            self.metrics, self.exported = before
            tf1.logging.warning(
                "%s was removed before it was evaluated and exported. Looking for a newer one.",
                path,
            )
            return EvalResult(EvalStatus.NO_NEW_CHECKPOINT)
        self._evaluated = path
        self._warned = -float(_SECONDS_BETWEEN_WARNINGS)
        return EvalResult(EvalStatus.EVALUATED, self.metrics, path)

    def _export(self, checkpoint_path: str, metrics: dict[str, Any]) -> list[Any]:
        folder = os.path.join(tf.compat.as_str_any(self._estimator.model_dir), "export")
        return [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(folder, str(exporter.name)),
                checkpoint_path=checkpoint_path,
                eval_result=metrics,
                is_the_final_export=self.done(),
            )
            for exporter in self._spec.exporters
        ]

    def _warn(self, message: str) -> None:
        now = time.monotonic()
        if now - self._warned >= _SECONDS_BETWEEN_WARNINGS:
            tf1.logging.warning(message)
            self._warned = now


def _checked_metrics(metrics: Any) -> dict[str, Any]:
    """`metrics`, if they are what `evaluate` returns; a subclass or a stand-in may err.

    Raises:
        TypeError: They are no dict.
        ValueError: They are empty, or have no global step.
    """
    if not metrics:
        raise ValueError("Internal error: `Estimator.evaluate` should never return empty metrics.")
    if not isinstance(metrics, dict):
        raise TypeError(f"`Estimator.evaluate` should return dict. Given {type(metrics)}.")
    if GLOBAL_STEP not in metrics:
        raise ValueError(
            "Internal error: `Estimator.evaluate` result should have `global_step` in result. "
            f"Given {metrics}"
        )
    return metrics


class EvaluationListener(tf1.train.CheckpointSaverListener):
    """Has each checkpoint evaluated as soon as it is saved, throttled; and the last one always.

    The checkpoint with which training starts is passed over: that model is not trained yet.

    Source: `_NewCheckpointListenerForEvaluate`, tensorflow_estimator 2.15 training.py.
    """

    def __init__(self, evaluator: Evaluator, throttle_secs: float, watcher: ContinuousEvalListener):
        self._evaluator = evaluator
        self._throttle_secs = throttle_secs
        self._watcher = watcher

    def begin(self) -> None:
        self._timer = tf1.train.SecondOrStepTimer(every_secs=self._throttle_secs)
        self._is_first = True

    def after_save(self, session: tf1.Session, global_step_value: Any) -> Any:
        """Returns True if training is to end."""
        del session
        if self._is_first:
            self._is_first = False
            return False
        if not self._watcher.before_eval():
            return _ended_by("before_eval")
        if not self._timer.should_trigger_for_step(global_step_value):
            tf1.logging.info(
                f"Skip the current checkpoint eval due to throttle secs ({self._throttle_secs} "
                "secs)."
            )
            return False
        return not self._watcher.after_eval(self._evaluate(global_step_value)) and _ended_by(
            "after_eval"
        )

    def end(self, session: tf1.Session, global_step_value: Any) -> None:
        del session
        if global_step_value != self._timer.last_triggered_step() and self._watcher.before_eval():
            self._watcher.after_eval(self._evaluate(global_step_value))

    def _evaluate(self, global_step_value: int) -> EvalResult:
        self._timer.update_last_triggered_step(global_step_value)
        with profiling.evaluating():
            result = self._evaluator.evaluate_and_export()
        if result.status != EvalStatus.EVALUATED:
            raise RuntimeError(
                f"There was no new checkpoint after the training. Eval status: {result.status}"
            )
        return result


def _ended_by(method: str) -> bool:
    tf1.logging.info(f"Exiting evaluation, as requested by _ContinuousEvalListener.{method}.")
    return True


def evaluate_until_trained(
    evaluator: Evaluator, eval_spec: EvalSpec, watcher: ContinuousEvalListener
) -> None:
    """The work of an evaluator process: evaluates new checkpoints until that of `max_steps`.

    Source: `_TrainingExecutor._start_continuous_evaluation`, tensorflow_estimator 2.15 training.py.
    """
    if eval_spec.start_delay_secs:
        tf1.logging.info("Waiting %f secs before starting eval.", eval_spec.start_delay_secs)
        time.sleep(eval_spec.start_delay_secs)
    while True:
        started = time.time()
        if not watcher.before_eval():
            _ended_by("before_eval")
            return
        result = evaluator.evaluate_and_export()
        if not watcher.after_eval(result):
            _ended_by("after_eval")
            return
        if evaluator.done():
            tf1.logging.info("Exiting evaluation, global_step >= train max_steps.")
            return
        left = eval_spec.throttle_secs - (time.time() - started)
        if left > 0:
            tf1.logging.info("Waiting %f secs before starting next eval run.", left)
            time.sleep(left)
        elif eval_spec.throttle_secs == 0 and result.status != EvalStatus.EVALUATED:
            tf1.logging.warning(
                "EvalSpec.throttle_secs is set as 0. This might overload the job before finding "
                "(next) new checkpoint. Please consider to increase it."
            )
