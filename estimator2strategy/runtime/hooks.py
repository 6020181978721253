"""Hooks of ours, beside TensorFlow's own."""

from __future__ import annotations

import tensorflow as tf

tf1 = tf.compat.v1


class ExamplesPerSecondHook(tf1.train.StepCounterHook):
    """Logs `global_step/sec` and `examples/sec`, and writes both as summaries.

    Args:
        batch_size: Global batch size, in examples; None: only steps are counted.
        every_n_steps: How often.
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

    def _log_and_record(self, elapsed_steps, elapsed_time, global_step):
        steps_per_second = elapsed_steps / elapsed_time
        rates = {"global_step/sec": steps_per_second}
        if self._batch_size:
            rates["examples/sec"] = self._batch_size * steps_per_second
        for tag, rate in rates.items():
            if self._summary_writer is not None:
                value = tf1.Summary.Value(tag=tag, simple_value=rate)
                self._summary_writer.add_summary(tf1.Summary(value=[value]), global_step)
            tf1.logging.info("%s: %g", tag, rate)
