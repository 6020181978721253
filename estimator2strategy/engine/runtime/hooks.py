"""Hooks of ours, beside TensorFlow's own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1

# The collection in which `tf.summary.create_file_writer` leaves the op that opens its file, when
# it is called in a graph. TensorFlow has a function that reads it, but not a public one.
_SUMMARY_WRITER_INIT_OPS = "_SUMMARY_WRITER_V2"


class ExamplesPerSecondHook(tf1.train.StepCounterHook):
    """Logs `global_step/sec` and `examples/sec`, and writes both as summaries.

    Args:
        batch_size: Global batch size, in examples; None: only steps are counted.
        every_n_steps: The number of steps from one call to the next.
        output_dir: Where the events go; None: nowhere.

    Source: `ExamplesPerSecondHook`, tensorflow_estimator 2.15 tpu_estimator.py.
    """

    def __init__(
        self,
        batch_size: int | None,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: tf1.summary.FileWriter | None = None,
    ):
        self._batch_size = batch_size
        super().__init__(
            every_n_steps=every_n_steps,
            every_n_secs=every_n_secs,
            output_dir=output_dir,
            summary_writer=summary_writer,
        )

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        steps_per_second = elapsed_steps / elapsed_time
        rates = {"global_step/sec": steps_per_second}
        if self._batch_size:
            rates["examples/sec"] = self._batch_size * steps_per_second
        for tag, rate in rates.items():
            if self._summary_writer is not None:
                value = tf1.Summary.Value(tag=tag, simple_value=rate)
                self._summary_writer.add_summary(tf1.Summary(value=[value]), global_step)
            tf1.logging.info("%s: %g", tag, rate)


class FetchingHook(tf1.train.SessionRunHook):
    """Makes every run fetch `tensors`, which other hooks fetch now and then."""

    tensors: Sequence[tf.Tensor] = ()

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf1.train.SessionRunArgs(list(self.tensors))


class InfeedSleepHook(tf1.train.SessionRunHook):
    """Waits before the first batch is taken: `TPUConfig.initial_infeed_sleep_secs`.

    Source: `TPUInfeedOutfeedSessionHook._run_infeed`, tensorflow_estimator 2.15 tpu_estimator.py.
    """

    def __init__(self, seconds: int):
        self._seconds = seconds

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        del session, coord
        tf1.logging.info("Infeed thread sleeping for %d seconds.", self._seconds)
        time.sleep(self._seconds)
        tf1.logging.info("Infeed thread starting after sleep")


class HostCallHook(tf1.train.SessionRunHook):
    """Evaluates the results of a `host_call` at every step, and opens and closes its writers.

    Source: `_OutfeedHostCallHook`, tensorflow_estimator 2.15 tpu_estimator.py.
    """

    def __init__(self, fetches: Any) -> None:
        """Takes the result of `host_fn`: nested tensors or ops, or None."""
        self.fetches = fetches
        self._open_ops: list[Any] = []
        self._flush_ops: list[Any] = []

    def begin(self) -> None:
        if self._open_ops:  # in an evaluation of one checkpoint after another
            return
        self._open_ops = tf.compat.v1.get_collection(_SUMMARY_WRITER_INIT_OPS)
        with tf.device("cpu:0"):
            self._flush_ops = [
                tf.raw_ops.FlushSummaryWriter(writer=op.inputs[0]) for op in self._open_ops
            ]

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        del coord
        session.run(self._open_ops)

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self.fetches)

    def end(self, session: tf1.Session) -> None:
        session.run(self._flush_ops)
