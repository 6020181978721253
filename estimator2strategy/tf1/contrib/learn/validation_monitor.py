"""`ValidationMonitor` of `tf.contrib.learn.monitors`: evaluations in the middle of a training.

Example, for `monitors=[monitor]` of `fit`:

    monitor = ValidationMonitor(
        input_fn=input_fn, every_n_steps=50, early_stopping_rounds=200)

Source: `tf.contrib.learn` monitors.py, TF 1.15.
"""

from __future__ import annotations

import copy
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.tf1.contrib.learn.monitor_bases import EveryN

_log = tf.compat.v1.logging


class ValidationMonitor(EveryN):
    """Evaluates each new checkpoint, and ends the training when a metric gets no better.

    Args:
        x, y, input_fn, batch_size, metrics, hooks, name: As for `evaluate` of the Estimator.
        eval_steps: Its `steps`.
        every_n_steps: Number of steps from one look for a checkpoint to the next.
        early_stopping_rounds: Number of steps without a better value after which training ends.
        early_stopping_metric: The metric that is compared.
        early_stopping_metric_minimize: True if less is better.
        check_interval_secs: Seconds from one look for a checkpoint to the next, at least.

    Raises:
        ValueError: There is nothing to evaluate on; while training, that there is no such metric.
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Mapping[Any, Any] | None = None,
        hooks: Sequence[Any] | None = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        check_interval_secs: float | None = 5,
    ):
        super().__init__(every_n_steps=every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self.x, self.y, self.input_fn = x, y, input_fn
        self.batch_size, self.eval_steps = batch_size, eval_steps
        self.metrics, self.hooks, self.name = metrics, hooks, name
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.early_stopping_metric_minimize = early_stopping_metric_minimize
        self._best_value_step: int | None = None
        self._best_value: Any = None
        self._best_metrics: dict[str, Any] | None = None
        self._early_stopped = False
        self._evaluated: str | None = None  # the latest checkpoint that was
        self._looked: float | None = None
        self._check_interval_secs = check_interval_secs

    @property
    def early_stopped(self) -> bool:
        """True if it ended the training."""
        return self._early_stopped

    @property
    def best_step(self) -> int | None:
        """The step of the best value."""
        return self._best_value_step

    @property
    def best_value(self) -> Any:
        """The best value of the metric."""
        return self._best_value

    @property
    def best_metrics(self) -> dict[str, Any] | None:
        """All metrics of that evaluation."""
        return self._best_metrics

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        super().every_n_step_end(step, outputs)
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        if not self._is_time_to_look():
            return False
        latest = tf.train.latest_checkpoint(self._estimator.model_dir)
        if latest is None or latest == self._evaluated:
            _log.debug("Skipping evaluation at step %d: there is no new checkpoint.", step)
            return False
        self._evaluated = latest
        results = self._evaluate()
        listed = ", ".join(f"{name} = {value}" for name, value in results.items())
        _log.info("Validation (step %d): %s", step, listed)
        return self.early_stopping_rounds is not None and self._is_over(step, results)

    def _is_time_to_look(self) -> bool:
        now = time.time()
        if (
            self._check_interval_secs is not None
            and self._looked is not None
            and now - self._looked <= self._check_interval_secs
        ):
            _log.debug(
                "Skipping evaluation since less than %d seconds have passed since last check for a "
                "new checkpoint.",
                self._check_interval_secs,
            )
            return False
        self._looked = now
        return True

    def _evaluate(self) -> dict[str, Any]:
        common = {
            "input_fn": self.input_fn,
            "steps": self.eval_steps,
            "hooks": self.hooks,
            "name": self.name,
        }
        of_learn = {
            "x": self.x,
            "y": self.y,
            "batch_size": self.batch_size,
            "metrics": self.metrics,
        }
        if hasattr(self._estimator, "fit"):  # an Estimator of tf.contrib.learn
            return cast(dict[str, Any], self._estimator.evaluate(**common, **of_learn))
        if any(value is not None for value in of_learn.values()):
            raise ValueError(
                "tf.estimator.Estimator does not support following arguments: x, y, batch_size, "
                "metrics. Should set as `None` in ValidationMonitor"
            )
        return cast(dict[str, Any], self._estimator.evaluate(**common))

    def _is_over(self, step: int, found: dict[str, Any]) -> bool:
        metric = self.early_stopping_metric
        if metric not in found:
            raise ValueError(f"Metric {metric} missing from outputs {set(found)}.")
        is_better = operator.lt if self.early_stopping_metric_minimize else operator.gt
        if self._best_value_step is None or is_better(found[metric], self._best_value):
            self._best_value, self._best_value_step = found[metric], step
            self._best_metrics = copy.deepcopy(found)
        assert self._best_value_step is not None
        assert self.early_stopping_rounds is not None
        if step - self._best_value_step < self.early_stopping_rounds:
            return False
        _log.info(
            "Stopping. Best step: %s with %s = %s.",
            self._best_value_step,
            metric,
            self._best_value,
        )
        self._early_stopped = True
        return True
