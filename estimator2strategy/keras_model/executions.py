"""Keras's train and test functions over a legacy model, under TensorFlow and under JAX.

    executions = Executions(model, make)
    executions.expect(steps_per_epoch=25)
    executions(iterator)      # with steps_per_execution=10 the calls run 10, 10 and 5 steps

Keras itself runs whole executions, and 30 steps. Keras also traces a step into a `tf.function`. One
that JAX runs (`LoopsOfJax`) is called from Python, batch by batch, and variables return to the host
when Keras calls its callbacks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.keras_model.legacy_program import LegacyProgram, features_and_labels


class Executions:
    """Calls the function that Keras makes for a model, with the steps that are due.

    Args:
        model: The model, whose `steps_per_execution` is the number of steps of a call.
        make: Makes a function of an iterator, for the number that the model has when it is traced.
    """

    def __init__(self, model: Any, make: Callable[[], Callable[..., Any]]):
        self._model, self._make = model, make
        self._functions: dict[int, Callable[..., Any]] = {}
        self._of_epoch: int | None = None
        self._left: int | None = None
        self._most: int | None = None

    def expect(self, steps_per_epoch: int | None, most: int | None = None) -> None:
        """Notes the steps of the epochs that follow.

        Args:
            steps_per_epoch: The steps of each; None: as many as the input has.
            most: The steps of all of them together; None: no limit.
        """
        self._of_epoch = self._left = steps_per_epoch
        self._most = most

    def __call__(self, iterator: Any) -> Any:
        limits = (self._model.steps_per_execution, self._left, self._most)
        due = min(limit for limit in limits if limit is not None)
        result = self._function(due)(iterator)
        if self._left is not None:
            self._left = self._left - due or self._of_epoch
        if self._most is not None:
            self._most -= due
            if not self._most:
                self._most, self._model.stop_training = None, True
        return result

    def _function(self, steps: int) -> Callable[..., Any]:
        """The function for so many steps, which Keras reads off the model as it traces."""

        def run(iterator: Any) -> Any:
            size, self._model.steps_per_execution = self._model.steps_per_execution, steps
            try:
                return made(iterator)
            finally:
                self._model.steps_per_execution = size

        made = self._functions.get(steps) or self._made(steps)
        return run

    def _made(self, steps: int) -> Callable[..., Any]:
        self._functions[steps] = self._make()
        return self._functions[steps]


def renew(model: Any, name: str, of_keras: Callable[..., Any]) -> None:
    """Gives a model new executions.

    Args:
        model: The model.
        name: "train_function" or "test_function", the attribute that Keras's loop calls.
        of_keras: Keras's method that makes it.
    """

    def make() -> Callable[..., Any]:
        of_keras(force=True)
        made: Callable[..., Any] = getattr(model, name)
        setattr(model, name, executions)
        return made

    executions = Executions(model, make)
    setattr(model, name, executions)


def uneven_size(x: Any, strategy: tf.distribute.Strategy) -> tf.Tensor | None:
    """The size of a replica's part of the batch, where it may be empty; else None."""
    first = tf.nest.flatten(x, expand_composites=True)[0]
    fixed = not first.shape.rank or first.shape[0] is not None
    return None if fixed or strategy.num_replicas_in_sync == 1 else tf.shape(first)[0]


def of_fixed_size(data: Any, size: int | None) -> Any:
    """A replica's part of a batch, with the size that it has always.

    Raises:
        ValueError: It has none: a TPU compiles for one.
    """

    def fixed(part: tf.Tensor) -> tf.Tensor:
        if size and part.shape.rank and part.shape[0] is None:
            part = tf.ensure_shape(part, [size, *part.shape[1:]])
        if not part.shape.is_fully_defined():
            raise ValueError(
                f"A batch has the shape {part.shape} under a TPUStrategy, where all sizes must be "
                "known. Pass a Dataset that was batched with drop_remainder=True."
            )
        return part

    return tf.nest.map_structure(fixed, data, expand_composites=True)


def assert_some(size: tf.Tensor) -> tf.Operation:
    """An op that fails where a replica has nothing to train on."""
    return tf.debugging.Assert(
        size > 0,
        [
            "The last batch has fewer examples than there are replicas, and one of them has "
            "nothing to train on. Batch with drop_remainder=True."
        ],
    )


def after(operation: tf.Operation, x: Any) -> Any:
    """The batch, once an op has run."""
    with tf.control_dependencies([operation]):
        return tf.nest.map_structure(tf.identity, x, expand_composites=True)


def unpacked(data: Any) -> tuple[Any, Any]:
    """(features, labels) of what Keras hands to a step."""
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    if sample_weight is not None:
        raise ValueError(
            "model_fn takes features and labels, and no sample_weight: put weights among the "
            "features."
        )
    return x, y


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
