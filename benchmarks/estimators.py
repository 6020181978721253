"""The contenders `e2s` (and its runtimes) and `legacy`: one TPUEstimator program, run in each.

A hook of ours would be a hook that e2s has to serve at every step, so nothing is hooked: both
implementations log `global_step/sec` every 50 steps from inside `train()`, and a `logging.Handler`
on TensorFlow's logger takes the time there and, at the end of a chunk, waits for its turn. That
logging also ends e2s's executions after 50 steps, which is what the other contenders run at once.
"""

from __future__ import annotations

import itertools
import logging
import re
import tempfile
import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from benchmarks import models
from benchmarks.contender import STEPS_PER_EXECUTION, Contender, Gate
from benchmarks.models import Model

NEVER = 10**9


class GateAtLogLine(logging.Handler):
    """Calls the gate whenever the training loop has logged its speed often enough for a chunk.

    Speed times the time between two lines gives the steps between them: that they are what we
    asked for is thereby checked, not assumed.
    """

    SPEED = re.compile(r"^global_step/sec: (\S+)$")

    def __init__(self, gate: Gate, chunk: int) -> None:
        super().__init__()
        self._gate, self._lines = gate, chunk // STEPS_PER_EXECUTION
        self._seen, self._steps, self._last = 0, 0.0, time.perf_counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Looks for the line among all that TensorFlow logs."""
        match = self.SPEED.match(record.getMessage())
        if not match:
            return
        now = time.perf_counter()
        self._steps += float(match.group(1)) * (now - self._last)
        self._seen, self._last = self._seen + 1, now
        if self._seen == self._lines:
            self._gate(round(self._steps))
            self._seen, self._steps = 0, 0.0


class Estimator(Contender):
    """A TPUEstimator with use_tpu=False."""

    # The folder of checkpoints; "": a new one.
    model_dir = ""

    def __init__(self, model: Model, estimator: Any, **options: Any) -> None:
        self.model, self._model_fn_seconds = model, 0.0
        tpu, self._export = estimator.tpu, estimator.export
        # TPUEstimator logs every log_step_count_steps / iterations_per_loop runs of its session;
        # with use_tpu=False a run is one step. How e2s cuts executions depends on the logging.
        config = tpu.RunConfig(
            model_dir=self.model_dir or tempfile.mkdtemp(),
            log_step_count_steps=STEPS_PER_EXECUTION,
            save_summary_steps=0,
            save_checkpoints_steps=NEVER,
            tpu_config=tpu.TPUConfig(iterations_per_loop=1),
        )
        self.estimator = tpu.TPUEstimator(
            self._timed(models.make_model_fn(model, estimator)),
            config=config,
            use_tpu=False,
            train_batch_size=model.batch_size,
            eval_batch_size=model.batch_size,
            predict_batch_size=model.batch_size,
            export_to_tpu=False,
            **options,
        )

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the model_fn that also notes its own duration."""

        def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
            started = time.perf_counter()
            spec = function(features, labels, mode, params)
            self._model_fn_seconds = time.perf_counter() - started
            return spec

        return model_fn

    def start(self) -> dict[str, float]:
        self.estimator.train(self.model.input_fn, steps=STEPS_PER_EXECUTION)
        return {"record_s": self._model_fn_seconds}

    def train(self, chunks: int, gate: Gate) -> None:
        logger = logging.getLogger("tensorflow")
        verbosity = tf.logging.get_verbosity()
        tf.logging.set_verbosity(tf.logging.INFO)
        handler = GateAtLogLine(gate, self.model.train_chunk)
        logger.addHandler(handler)
        try:
            # The first step starts the first interval.
            steps = (chunks + 1) * self.model.train_chunk + 1
            self.estimator.train(self.model.input_fn, steps=steps)
        finally:
            logger.removeHandler(handler)
            tf.logging.set_verbosity(verbosity)

    def prepare_evaluation(self) -> None:
        pass

    def evaluate(self, steps: int) -> None:
        self.estimator.evaluate(self.model.input_fn, steps=steps)

    def predict(self, steps: int) -> None:
        batches = self.estimator.predict(self.model.input_fn, yield_single_examples=False)
        for _ in itertools.islice(batches, steps):
            pass

    def extras(self) -> dict[str, Callable[[], Any]]:
        def restart() -> None:
            self.estimator.train(self.model.input_fn, steps=1)

        def export() -> None:
            folder = tempfile.mkdtemp()
            self.estimator.export_saved_model(folder, self._serving)

        return {"restart_s": restart, "export_s": export}

    def _serving(self) -> Any:
        dataset = self.model.input_fn({"batch_size": self.model.batch_size})
        shapes, types = tf.data.get_output_shapes(dataset), tf.data.get_output_types(dataset)
        example = tf.placeholder(types[0], [None, *shapes[0].as_list()[1:]])
        return self._export.TensorServingInputReceiver(example, example)


def e2s(model: Model) -> Estimator:
    """Today's TensorFlow with estimator2strategy."""
    from estimator2strategy import estimator

    return Estimator(model, estimator)


def e2s_jit(model: Model) -> Estimator:
    """The same, with steps that XLA compiles."""
    from estimator2strategy import estimator

    return Estimator(model, estimator, options=estimator.TrainingOptions(jit_compile=True))


def e2s_jax(model: Model) -> Estimator:
    """The same, with steps that JAX runs."""
    from estimator2strategy import estimator

    options = estimator.TrainingOptions(runtime=estimator.Runtime.JAX)
    return Estimator(model, estimator, options=options)


def legacy(model: Model) -> Estimator:
    """TensorFlow 2.15 and earlier."""
    return Estimator(model, tf.estimator)
