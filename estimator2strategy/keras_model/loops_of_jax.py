"""Keras's loops over a model whose steps a device of JAX runs.

Keras traces a step into a `tf.function`. One that JAX runs is called from Python, batch by batch,
and variables return to the host when Keras calls its callbacks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.keras_model.legacy_program import LegacyProgram, features_and_labels
from estimator2strategy.keras_model.parts_of_batches import unpacked


class LoopsOfJax(keras.Model):
    """A Keras model that steps eagerly where JAX runs its steps.

    Attributes:
        under_jax: True if JAX runs them.
    """

    _legacy: LegacyProgram
    _spec: Any = None  # of the batches of the loop that runs, if it knows

    @property
    def under_jax(self) -> bool:
        return self._legacy.target is not None

    def make_train_function(self, force: bool = False) -> Any:
        if not self.under_jax:
            return super().make_train_function(force)
        self.train_function = self._looped(self.train_step)
        return self.train_function

    def make_test_function(self, force: bool = False) -> Any:
        if not self.under_jax:
            return super().make_test_function(force)
        self.test_function = self._looped(self.test_step)
        return self.test_function

    def make_predict_function(self, force: bool = False) -> Any:
        if not self.under_jax:
            return super().make_predict_function(force)

        def predict(batches: Iterable[Any]) -> Any:
            predicted = [self.predict_step(_of_tensors(data)) for data in batches]
            self._legacy.give_back()
            return tf.nest.map_structure(lambda *parts: tf.concat(parts, 0), *predicted)

        self.predict_function = predict
        return predict

    def _kind_of(self, x: Any, y: Any) -> tuple[Any, ...]:
        """A batch, or the spec of all batches, for which model_fn is recorded."""
        return features_and_labels(*(unpacked(_of_tensors(self._spec)) if self._spec else (x, y)))

    def _looped(self, step: Callable[[Any], Any]) -> Callable[[Iterable[Any]], Any]:
        """A function of an iterator that runs `steps_per_execution` steps."""

        def loop(iterator: Iterable[Any]) -> Any:
            logs = None
            # Also of a last batch that is smaller: all batches are of one kind, with its metrics.
            self._spec = getattr(iterator, "element_spec", None)
            try:
                for data in itertools.islice(iterator, self.steps_per_execution):
                    logs = step(_of_tensors(data))
            finally:
                self._spec = None
                self._legacy.give_back()
            if logs is None:
                raise StopIteration
            return logs

        return loop


def _of_tensors(data: Any) -> Any:
    """A batch of Keras's as tensors, or its spec, with None for what it leaves out."""

    def tensor(leaf: Any) -> Any:
        if leaf is None or isinstance(leaf, (tf.experimental.Optional, tf.OptionalSpec)):
            return None
        there = tf.is_tensor(leaf) or isinstance(leaf, tf.TypeSpec)
        return leaf if there else tf.convert_to_tensor(leaf)

    return tf.nest.map_structure(tensor, data)
