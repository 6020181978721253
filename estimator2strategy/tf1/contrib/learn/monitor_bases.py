"""The bases of `tf.contrib.learn.monitors`, which watched a training before there were hooks.

Example:

    class Printer(EveryN):
        def every_n_step_begin(self, step):
            return ["loss:0"]

        def every_n_step_end(self, step, outputs):
            print(step, outputs["loss:0"])

Source: `tf.contrib.learn` monitors.py, TF 1.15.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
        step, found = self._step, run_values.results["monitors"]
        for monitor in self._monitors:
            if monitor.step_end(step, found):
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
