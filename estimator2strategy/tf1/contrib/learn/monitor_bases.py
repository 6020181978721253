"""The bases of `tf.contrib.learn.monitors`, which watched a training before there were hooks.

Example:

    class Printer(EveryN):
        def every_n_step_begin(self, step):
            return ["loss:0"]

        def every_n_step_end(self, step, outputs):
            print(step, outputs["loss:0"])

Source: `tf.contrib.learn` monitors.py, TF 1.15.

`ValidationMonitor` has evaluations in the middle of a training.

Example, for `monitors=[monitor]` of `fit`:

    monitor = ValidationMonitor(
        input_fn=input_fn, every_n_steps=50, early_stopping_rounds=200)

Source: `tf.contrib.learn` monitors.py, TF 1.15.
"""

from __future__ import annotations

import copy
import inspect
import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

_v1 = tf.compat.v1


class BaseMonitor:
    """The base of monitors; subclasses of programs call its methods from theirs.

    Steps are counted from 1: before the first one `step_begin(1)` is called.
    """

    def __init__(self) -> None:
        self._begun = False
        self._current_epoch: int | None = None
        self._current_step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        """False where only the chief of a cluster runs it."""
        return False

    def set_estimator(self, estimator: Any) -> None:
        """Called before training, with the Estimator that trains.

        Raises:
            ValueError: It is None.
        """
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Called when the graph is there; raises ValueError if it was called before."""
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._max_steps = max_steps
        self._begun = True

    def end(self, session: _v1.Session | None = None) -> None:
        """Called after training; raises ValueError if there was none."""
        del session
        if not self._begun:
            raise ValueError("end called without begin.")
        self._max_steps = None
        self._begun = False

    def epoch_begin(self, epoch: int) -> None:
        """Raises ValueError if an epoch is under way, or this one is below 0."""
        if self._current_epoch is not None:
            raise ValueError("epoch_begin called twice without epoch_end.")
        if epoch < 0:
            raise ValueError(f"Invalid epoch {epoch}.")
        self._current_epoch = epoch

    def epoch_end(self, epoch: int) -> None:
        """Raises ValueError if another epoch is under way."""
        if self._current_epoch != epoch:
            raise ValueError(f"epoch_end expected {self._current_epoch} but got {epoch}.")
        self._current_epoch = None

    def step_begin(self, step: int) -> list[Any]:
        """Called before a step.

        Returns:
            Tensors, or their names, whose values `step_end` wants.

        Raises:
            ValueError: There is no such step.
        """
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"Invalid step {step}.")
        self._current_step = step
        return []

    def step_end(self, step: int, output: Mapping[Any, Any]) -> bool:
        """Called after a step.

        Args:
            step: The step.
            output: The values that `step_begin` asked for, by what it gave.

        Returns:
            True to end the training.

        Raises:
            ValueError: Another step is under way.
        """
        del output
        if self._current_step != step:
            raise ValueError(f"step_end expected {self._current_step} but got {step}.")
        self._current_step = None
        return False

    def post_step(self, step: int, session: _v1.Session | None) -> None:
        """Called after `step_end` of all monitors, with a session that can run ops."""


class EveryN(BaseMonitor):
    """The base of monitors that do something every so many steps.

    Args:
        every_n_steps: Number of steps from one time to the next.
        first_n_steps: Steps up to this one all count.
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1):
        super().__init__()
        self._every_n_steps = every_n_steps
        self._first_n_steps = first_n_steps
        self._last_successful_step: int | None = None
        self._last_active_step = 0
        self._every_n_step_begin_called = False

    def every_n_step_begin(self, step: int) -> list[Any]:
        """`step_begin` of such a step."""
        del step
        return []

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """`step_end` of such a step."""
        del step, outputs
        return False

    def every_n_post_step(self, step: int | None, session: _v1.Session | None) -> None:
        """`post_step` of such a step, and of the last one."""

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        self._every_n_step_begin_called = (
            step <= self._first_n_steps
            or step >= self._every_n_steps + self._last_active_step
            or step == self._max_steps
        )
        return self.every_n_step_begin(step) if self._every_n_step_begin_called else []

    def step_end(self, step: int, output: Mapping[Any, Any]) -> bool:
        super().step_end(step, output)
        return self._every_n_step_begin_called and self.every_n_step_end(step, output)

    def post_step(self, step: int, session: _v1.Session | None) -> None:
        super().post_step(step, session)
        if self._every_n_step_begin_called:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: _v1.Session | None = None) -> None:
        super().end(session=session)
        if self._last_successful_step != self._last_active_step:
            self.every_n_post_step(self._last_successful_step, session)


class RunHookAdapterForMonitors(_v1.train.SessionRunHook):
    """The hook that runs monitors."""

    def __init__(self, monitors: Sequence[Any]):
        self._monitors = monitors

    def begin(self) -> None:
        self._step: int | None = None
        self._counter = _v1.train.get_global_step()
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: Any) -> Any:
        if self._step is None:
            self._step = int(run_context.session.run(self._counter)) + 1
        wanted: list[Any] = []
        for monitor in self._monitors:
            requests = monitor.step_begin(self._step)
            if requests and not isinstance(requests, list):
                raise ValueError("Monitor.step_begin should return a list.")
            wanted.extend(requests or [])
        graph = run_context.session.graph
        tensors = {request: _element(graph, request) for request in wanted}
        return _v1.train.SessionRunArgs({"step": self._counter, "monitors": tensors})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step, results = self._step, run_values.results["monitors"]
        for monitor in self._monitors:
            if monitor.step_end(step, results):
                run_context.request_stop()
        for monitor in self._monitors:
            monitor.post_step(step, run_context.session)
        self._step = int(run_values.results["step"]) + 1

    def end(self, session: _v1.Session | None) -> None:
        self._step = None
        for monitor in self._monitors:
            takes_it = "session" in inspect.signature(monitor.end).parameters
            monitor.end(**({"session": session} if takes_it else {}))


def _element(graph: tf.Graph, request: Any) -> Any:
    """The tensor that a monitor asks for, by itself or by its name."""
    if not isinstance(request, str):
        if getattr(request, "graph", None) is not graph:
            raise ValueError(
                f"Passed {request} should have graph attribute that is equal to current graph "
                f"{graph}."
            )
        return request
    return graph.as_graph_element(request if ":" in request else f"{request}:0")


def replace_monitors_with_hooks(
    monitors_or_hooks: Iterable[Any] | None, estimator: Any
) -> list[Any]:
    """The hooks among them, and one that runs the monitors among them.

    Args:
        monitors_or_hooks: Both, in any order.
        estimator: Trains. On other processes than the chief only monitors with
            `run_on_all_workers` run.
    """
    given = list(monitors_or_hooks or [])
    hooks = [one for one in given if isinstance(one, _v1.train.SessionRunHook)]
    monitors = [one for one in given if not isinstance(one, _v1.train.SessionRunHook)]
    if not estimator.config.is_chief:
        monitors = [monitor for monitor in monitors if monitor.run_on_all_workers]
    for monitor in monitors:
        monitor.set_estimator(estimator)
    return [*hooks, RunHookAdapterForMonitors(monitors)] if monitors else hooks


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

    def _is_over(self, step: int, outputs: dict[str, Any]) -> bool:
        metric = self.early_stopping_metric
        if metric not in outputs:
            raise ValueError(f"Metric {metric} missing from outputs {set(outputs)}.")
        is_better = operator.lt if self.early_stopping_metric_minimize else operator.gt
        if self._best_value_step is None or is_better(outputs[metric], self._best_value):
            self._best_value, self._best_value_step = outputs[metric], step
            self._best_metrics = copy.deepcopy(outputs)
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
