"""Keras's train and test functions, whose last call runs no more steps than were asked for.

    executions = Executions(model, make)
    executions.expect(steps_per_epoch=25)
    executions(iterator)      # with steps_per_execution=10 the calls run 10, 10 and 5 steps

Keras itself runs whole executions, and 30 steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
