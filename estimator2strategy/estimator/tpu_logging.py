"""The log of a TPUEstimator while it trains: the loss, `global_step/sec` and `examples/sec`."""

from __future__ import annotations

import dataclasses
import math

import tensorflow as tf

from estimator2strategy.engine.runtime.hooks import ExamplesPerSecondHook
from estimator2strategy.engine.runtime.lookahead import IterationsPerLoop, LoopUnit

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class TrainingLog:
    """The hooks that log a training.

    Attributes:
        log_every: `RunConfig.log_step_count_steps`; None: nothing is logged.
        iterations: `TPUConfig.iterations_per_loop`.
        batch_size: The global batch size, in examples.
        output_dir: A folder for summaries of the rates; None: no summaries.
    """

    log_every: int | None
    iterations: IterationsPerLoop
    batch_size: int | None
    output_dir: str | None

    def hooks(self, loss: tf.Tensor, *, on_host: bool) -> list[tf1.train.SessionRunHook]:
        """The hooks that log.

        The rates come every `log_every / iterations` steps, on the host too: that is how the
        original reads `log_step_count_steps`. It did not log the loss on the host; we do.

        Args:
            loss: Scalar.
            on_host: True if hooks see every step, and not only every execution.

        Source: `TPUEstimator.__init__` and `_augment_model_fn`, tensorflow_estimator 2.15.
        """
        iterations, log_every = self.iterations, self.log_every
        if not log_every:
            return []
        tensors = {"loss": loss, "step": tf1.train.get_global_step()}
        if iterations.unit is LoopUnit.SECONDS:
            every = {"every_n_secs": iterations.value}
            loss_hook = tf1.train.LoggingTensorHook(tensors, **every)
            rates = ExamplesPerSecondHook(
                self.batch_size, every_n_steps=None, output_dir=self.output_dir, **every
            )
            return [loss_hook, rates]
        runs = math.ceil(log_every / iterations.value)
        rates = ExamplesPerSecondHook(
            self.batch_size, every_n_steps=runs, output_dir=self.output_dir
        )
        if not on_host:
            rates._set_steps_per_run(iterations.value)
        every_n_iter = log_every if on_host else runs
        return [tf1.train.LoggingTensorHook(tensors, every_n_iter=every_n_iter), rates]
