"""The Orbit contender: the hand-written step under Orbit's controller (the package `orbit`)."""

from __future__ import annotations

from typing import Any

import orbit
import tensorflow as tf

from benchmarks import models
from benchmarks.contender import STEPS_PER_EXECUTION, Gate
from benchmarks.loop import Loop
from benchmarks.models import Model


class OrbitTrainer(orbit.StandardTrainer):
    """`train_step` is the hand-written one; Orbit loops over it."""

    def __init__(self, trainer: Any, dataset: Any) -> None:
        self._trainer = trainer
        super().__init__(dataset)

    def train_step(self, iterator: Any) -> None:
        """One step."""
        self._trainer.train_step(*next(iterator))


class Orbit(Loop):
    """Evaluates and predicts as the hand-written loop: Orbit has no say in that."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        dataset = models.dataset(model, model.data(), model.batch_size)
        self._controller = orbit.Controller(
            global_step=self.trainer.step,
            trainer=OrbitTrainer(self.trainer, dataset),
            steps_per_loop=STEPS_PER_EXECUTION,
        )
        tf.get_logger().setLevel("ERROR")

    def start(self) -> dict[str, float]:
        self._controller.train(steps=STEPS_PER_EXECUTION, checkpoint_at_completion=False)
        return {}

    def train(self, chunks: int, gate: Gate) -> None:
        for _ in range(chunks + 1):
            steps = int(self.trainer.step) + self.model.train_chunk
            self._controller.train(steps=steps, checkpoint_at_completion=False)
            gate()
