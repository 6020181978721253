"""Monitors of `tf.contrib.learn.monitors` that log, write and end; evaluations are apart.

Example, for `monitors=[monitor]` of `fit`:

    monitor = PrintTensor({"loss": "mean_squared_error/value:0"}, every_n=10)

Source: `tf.contrib.learn` monitors.py, TF 1.15.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.tf1.contrib.learn.monitor_bases import BaseMonitor, EveryN

_v1 = tf.compat.v1


def _found(outputs: Mapping[Any, Any], request: Any) -> Any:
    return outputs[request] if request in outputs else outputs[request.name]


def _listed(outputs: Mapping[Any, Any], names: Mapping[str, Any]) -> str:
    return ", ".join(f"{tag} = {outputs[name]}" for tag, name in names.items() if name in outputs)


class StopAtStep(BaseMonitor):
    """Ends a training.

    Args:
        num_steps: After so many steps.
        last_step: After this step.

    Raises:
        ValueError: Not one of them is given.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None):
        super().__init__()
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    @property
    def run_on_all_workers(self) -> bool:
        return True

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = step + self._num_steps - 1
        return []

    def step_end(self, step: int, output: Mapping[Any, Any]) -> bool:
        super().step_end(step, output)
        assert self._last_step is not None
        return step >= self._last_step


class PrintTensor(EveryN):
    """Logs the values of tensors.

    Args:
        tensor_names: Names of tensors; or what to call them, and their names.
        every_n, first_n: As for `EveryN`.
    """

    def __init__(
        self, tensor_names: Mapping[str, str] | Iterable[str], every_n: int = 100, first_n: int = 1
    ):
        super().__init__(every_n, first_n)
        if not isinstance(tensor_names, Mapping):
            tensor_names = {name: name for name in tensor_names}
        self._tensor_names = dict(tensor_names)

    def every_n_step_begin(self, step: int) -> list[Any]:
        super().every_n_step_begin(step)
        return list(self._tensor_names.values())

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        _v1.logging.info("Step %d: %s", step, _listed(outputs, self._tensor_names))
        return super().every_n_step_end(step, outputs)


class LoggingTrainable(EveryN):
    """Logs the values of trainable variables.

    Args:
        scope: Begins the names of those that are logged; all by default.
        every_n, first_n: As for `EveryN`.
    """

    def __init__(self, scope: str | None = None, every_n: int = 100, first_n: int = 1):
        super().__init__(every_n, first_n)
        self._scope = scope

    def begin(self, max_steps: int | None = None) -> None:
        super().begin(max_steps)
        variables = _v1.get_collection(_v1.GraphKeys.TRAINABLE_VARIABLES, scope=self._scope)
        self._values = {variable.name: variable.value().name for variable in variables}

    def every_n_step_begin(self, step: int) -> list[Any]:
        super().every_n_step_begin(step)
        return list(self._values.values())

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        _v1.logging.info("Logging Trainable: Step %d: %s", step, _listed(outputs, self._values))
        return super().every_n_step_end(step, outputs)


class CaptureVariable(EveryN):
    """Keeps the values of a tensor.

    Args:
        var_name: Its name, with ":0" at the end.
        every_n, first_n: As for `EveryN`.
    """

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1):
        super().__init__(every_n, first_n)
        self._var_name = var_name
        self._var_values: dict[int, Any] = {}

    @property
    def values(self) -> dict[int, Any]:
        """Step -> value."""
        return self._var_values

    def every_n_step_begin(self, step: int) -> list[Any]:
        super().every_n_step_begin(step)
        return [self._var_name]

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        self._var_values[step] = _found(outputs, self._var_name)
        return super().every_n_step_end(step, outputs)


class SummarySaver(EveryN):
    """Writes summaries.

    Args:
        summary_op: Of `tf.summary`, such as `merge_all`.
        save_steps: Number of steps from one time to the next.
        output_dir: Folder of the events; that of the Estimator by default.
        summary_writer: In the place of `output_dir`.
        scaffold: Has the summaries, where `summary_op` is None.
    """

    def __init__(
        self,
        summary_op: Any,
        save_steps: int = 100,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
    ):
        super().__init__(every_n_steps=save_steps)
        self._summary_op = summary_op
        self._scaffold = scaffold
        self._summary_writer = summary_writer or _writer(output_dir)

    def set_estimator(self, estimator: Any) -> None:
        super().set_estimator(estimator)
        self._summary_writer = self._summary_writer or _writer(estimator.model_dir)

    def every_n_step_begin(self, step: int) -> list[Any]:
        super().every_n_step_begin(step)
        if self._summary_op is None and self._scaffold is not None:
            self._summary_op = self._scaffold.summary_op
        return [] if self._summary_op is None else [self._summary_op]

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        if self._summary_op is not None and self._summary_writer:
            self._summary_writer.add_summary(_found(outputs, self._summary_op), step)
        return super().every_n_step_end(step, outputs)

    def end(self, session: _v1.Session | None = None) -> None:
        super().end(session=session)
        if self._summary_writer:
            self._summary_writer.flush()


def _writer(folder: str | None) -> Any:
    return _v1.summary.FileWriterCache.get(folder) if folder else None


class StepCounter(EveryN):
    """Writes the summary global_step/sec.

    Args:
        every_n_steps: Number of steps from one time to the next.
        output_dir, summary_writer: As for `SummarySaver`.
    """

    def __init__(
        self, every_n_steps: int = 100, output_dir: str | None = None, summary_writer: Any = None
    ):
        super().__init__(every_n_steps=every_n_steps)
        self._summary_writer = summary_writer or _writer(output_dir)
        self._last: tuple[int, float] | None = None

    def set_estimator(self, estimator: Any) -> None:
        super().set_estimator(estimator)
        self._summary_writer = self._summary_writer or _writer(estimator.model_dir)

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        now = time.time()
        if self._last is not None and self._summary_writer:
            rate = (step - self._last[0]) / (now - self._last[1])
            value = _v1.Summary.Value(tag="global_step/sec", simple_value=rate)
            self._summary_writer.add_summary(_v1.Summary(value=[value]), step)
        self._last = (step, now)
        return super().every_n_step_end(step, outputs)


class CheckpointSaver(BaseMonitor):
    """Writes checkpoints.

    Args:
        checkpoint_dir: Their folder.
        save_secs, save_steps: Seconds, or steps, from one to the next.
        saver: The Saver.
        checkpoint_basename: Their name.
        scaffold: Has the Saver, where `saver` is None.

    Raises:
        ValueError: Not one of `save_secs` and `save_steps` is given.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
    ):
        _v1.logging.info("Create CheckpointSaver.")
        super().__init__()
        if save_steps is None and save_secs is None:
            raise ValueError("Either save_steps or save_secs should be provided")
        if save_steps is not None and save_secs is not None:
            raise ValueError("Can not provide both save_steps and save_secs.")
        self._saver, self._scaffold = saver, scaffold
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._save_secs, self._save_steps = save_secs, save_steps
        self._saved: tuple[int, float] | None = None
        self._last_begin_step: int | None = None

    def begin(self, max_steps: int | None = None) -> None:
        super().begin(max_steps)
        self._saved, self._last_begin_step = None, None

    def step_begin(self, step: int) -> list[Any]:
        self._last_begin_step = step
        return super().step_begin(step)

    def post_step(self, step: int, session: _v1.Session | None) -> None:
        super().post_step(step, session)
        if (
            self._saved is None
            or (self._save_steps is not None and step >= self._saved[0] + self._save_steps)
            or (self._save_secs is not None and time.time() >= self._saved[1] + self._save_secs)
        ):
            self._save(step, session)

    def end(self, session: _v1.Session | None = None) -> None:
        super().end(session)
        if self._last_begin_step is not None:
            self._save(self._last_begin_step, session)

    def _save(self, step: int, session: _v1.Session | None) -> None:
        if self._saved is not None and step == self._saved[0]:
            return
        _v1.logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        self._saved = (step, time.time())
        saver = self._scaffold.saver if self._saver is None else self._saver
        saver.save(session, self._save_path, global_step=step)


class NanLossDuringTrainingError(RuntimeError):
    """The loss is NaN."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanLoss(EveryN):
    """Ends a training whose loss is NaN.

    Args:
        loss_tensor: The loss.
        every_n_steps: Number of steps from one look to the next.
        fail_on_nan_loss: True for an error, False for an end without one.

    Raises:
        NanLossDuringTrainingError: While training.
    """

    def __init__(
        self, loss_tensor: tf.Tensor, every_n_steps: int = 100, fail_on_nan_loss: bool = True
    ):
        super().__init__(every_n_steps=every_n_steps)
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> list[Any]:
        super().every_n_step_begin(step)
        return [self._loss_tensor]

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        super().every_n_step_end(step, outputs)
        is_nan = bool(np.isnan(_found(outputs, self._loss_tensor)))
        if is_nan and self._fail_on_nan_loss:
            _v1.logging.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        if is_nan:
            _v1.logging.warning("Model diverged with loss = NaN.")
        return is_nan


def get_default_monitors(
    loss_op: tf.Tensor | None = None,
    summary_op: Any = None,
    save_summary_steps: int = 100,
    output_dir: str | None = None,
    summary_writer: Any = None,
) -> list[BaseMonitor]:
    """A PrintTensor for the loss, and a SummarySaver: of these, those that something is given for.

    Args:
        loss_op: The loss.
        summary_op, save_summary_steps, output_dir, summary_writer: As for `SummarySaver`.
    """
    made: list[BaseMonitor] = []
    if loss_op is not None:
        made.append(PrintTensor({"loss": loss_op.name}))
    if summary_op is not None:
        made.append(SummarySaver(summary_op, save_summary_steps, output_dir, summary_writer))
    return made
