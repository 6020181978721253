"""Evaluates and exports each new checkpoint of an Estimator, while it trains or beside it."""

from __future__ import annotations

import os
import time
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.training_specs import EvalSpec

tf1 = tf.compat.v1
GLOBAL_STEP = tf1.GraphKeys.GLOBAL_STEP

# What repeats while an evaluator waits for a checkpoint is said once in ten minutes.
_SECONDS_BETWEEN_WARNINGS = 600


class Evaluator:
    """Evaluates the latest checkpoint, when there is a new one, and calls the exporters.

    Args:
        estimator: Whose checkpoints.
        eval_spec: How to evaluate, and what to export.
        max_steps: Global step of the final export; None: no export is the final one.

    Attributes:
        metrics: Results of the last evaluation; None before the first.
        exported: What the exporters returned after it.

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
        """Whether the checkpoint with which training ends has been evaluated."""
        return bool(
            self.metrics and self._max_steps and self.metrics[GLOBAL_STEP] >= self._max_steps
        )

    def evaluate_and_export(self) -> bool:
        """Returns False if there is no checkpoint, or no new one."""
        path = self._estimator.latest_checkpoint()
        if not path:
            self._warn(
                "Estimator is not trained yet. Will start an evaluation when a checkpoint is ready."
            )
            return False
        if path == self._evaluated:
            self._warn(
                "No new checkpoint ready for evaluation. Skip the current evaluation pass as "
                "evaluation results are expected to be same for the same checkpoint."
            )
            return False
        metrics = self._estimator.evaluate(
            input_fn=self._spec.input_fn,
            steps=self._spec.steps,
            name=self._spec.name,
            checkpoint_path=path,
            hooks=self._spec.hooks,
        )
        self.metrics = _checked_metrics(metrics)
        self.exported = self._export(path, self.metrics)
        self._evaluated = path
        self._warned = -float(_SECONDS_BETWEEN_WARNINGS)
        return True

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

    def __init__(self, evaluator: Evaluator, throttle_secs: float):
        self._evaluator = evaluator
        self._throttle_secs = throttle_secs

    def begin(self):
        self._timer = tf1.train.SecondOrStepTimer(every_secs=self._throttle_secs)
        self._is_first = True

    def after_save(self, session, global_step_value):
        del session
        if self._is_first:
            self._is_first = False
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            tf1.logging.info(
                f"Skip the current checkpoint eval due to throttle secs ({self._throttle_secs} "
                "secs)."
            )

    def end(self, session, global_step_value):
        del session
        if global_step_value != self._timer.last_triggered_step():
            self._evaluate(global_step_value)

    def _evaluate(self, global_step_value: int) -> None:
        self._timer.update_last_triggered_step(global_step_value)
        if not self._evaluator.evaluate_and_export():
            raise RuntimeError("There was no new checkpoint after the training.")


def evaluate_until_trained(evaluator: Evaluator, eval_spec: EvalSpec) -> None:
    """The work of an evaluator process: evaluates new checkpoints until that of `max_steps`.

    Source: `_TrainingExecutor._start_continuous_evaluation`, tensorflow_estimator 2.15 training.py.
    """
    if eval_spec.start_delay_secs:
        tf1.logging.info("Waiting %f secs before starting eval.", eval_spec.start_delay_secs)
        time.sleep(eval_spec.start_delay_secs)
    while True:
        started = time.time()
        evaluated = evaluator.evaluate_and_export()
        if evaluator.done():
            tf1.logging.info("Exiting evaluation, global_step >= train max_steps.")
            return
        left = eval_spec.throttle_secs - (time.time() - started)
        if left > 0:
            tf1.logging.info("Waiting %f secs before starting next eval run.", left)
            time.sleep(left)
        elif eval_spec.throttle_secs == 0 and not evaluated:
            tf1.logging.warning(
                "EvalSpec.throttle_secs is set as 0. This might overload the job before finding "
                "(next) new checkpoint. Please consider to increase it."
            )
