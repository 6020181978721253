"""`ScipyOptimizerInterface` of `tf.contrib.opt` of TF 1.15: what minimises is outside of the graph.

It evaluates the loss and its gradient in a Session for one vector of all variables after the other,
and assigns the best one at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import tensorflow as tf

_v1 = tf.compat.v1

_Vector = np.ndarray


class ExternalOptimizerInterface:
    """Minimises a loss by a method that a subclass writes: `_minimize`.

    Args:
        loss: A scalar.
        var_list: The variables; all trainable ones by default.
        equalities: Scalars to be held at 0.
        inequalities: Scalars to be held at 0 or above.
        var_to_bounds: (low, high) by variable: numbers, or arrays that fit its shape.
        **optimizer_kwargs: For `_minimize`.
    """

    def __init__(
        self,
        loss: tf.Tensor,
        var_list: Iterable[Any] | None = None,
        equalities: Sequence[tf.Tensor] | None = None,
        inequalities: Sequence[tf.Tensor] | None = None,
        var_to_bounds: Mapping[Any, Any] | None = None,
        **optimizer_kwargs: Any,
    ):
        self.optimizer_kwargs = optimizer_kwargs
        self._vars = _v1.trainable_variables() if var_list is None else list(var_list)
        self._loss = loss
        self._equalities = list(equalities or ())
        self._inequalities = list(inequalities or ())
        self._packed_bounds = None if var_to_bounds is None else self._bounds(var_to_bounds)
        self._update_placeholders = [_v1.placeholder(v.dtype) for v in self._vars]
        self._var_updates = [
            v.assign(tf.reshape(value, v.shape))
            for v, value in zip(self._vars, self._update_placeholders, strict=True)
        ]
        self._packed_var = _packed(self._vars)
        self._packed_loss_grad = self._gradient(loss)
        self._equality_grads = [self._gradient(scalar) for scalar in self._equalities]
        self._inequality_grads = [self._gradient(scalar) for scalar in self._inequalities]

    def _bounds(self, by_variable: Mapping[Any, Any]) -> list[tuple[float, float]]:
        """(low, high) of each element of the vector."""
        # A tensor as the key of a dict, as programs have it, is one by its identity.
        given = {id(variable): bounds for variable, bounds in by_variable.items()}
        pairs: list[tuple[float, float]] = []
        for variable in self._vars:
            bounds = given.get(id(variable), (-math.inf, math.inf))
            low, high = (np.broadcast_to(b, variable.shape.as_list()).ravel() for b in bounds)
            pairs += zip(low, high, strict=True)
        return pairs

    def _gradient(self, scalar: tf.Tensor) -> tf.Tensor:
        gradients = _v1.gradients(scalar, self._vars)
        pairs = zip(gradients, self._vars, strict=True)
        return _packed([tf.zeros_like(v) if g is None else g for g, v in pairs])

    def _parts(self, vector: _Vector) -> list[_Vector]:
        """The value of each variable in the vector of all."""
        shapes = [v.shape.as_list() for v in self._vars]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        parts = np.split(vector, ends)
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def minimize(
        self,
        session: _v1.Session | None = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[[_Vector], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Minimises the loss, and assigns the variables.

        Args:
            session: A Session; the default one by default.
            feed_dict: For each evaluation.
            fetches: What `loss_callback` gets.
            step_callback: Called after each step, with the vector of all variables.
            loss_callback: Called after each evaluation of the loss.
            **run_kwargs: For the run that assigns the variables.
        """
        session = session or _v1.get_default_session()
        assert session is not None, "minimize needs a Session"
        fetches = list(fetches or ())

        def evaluator(
            tensors: Any, callback: Callable[..., Any] | None = None
        ) -> Callable[..., Any]:
            wanted = tensors if isinstance(tensors, list) else [tensors]

            def evaluate(vector: _Vector) -> Any:
                feeds = dict(zip(self._vars, self._parts(vector), strict=True))
                values = session.run(wanted + fetches, {**feeds, **(feed_dict or {})})
                if callback is not None:
                    callback(*values[len(wanted) :])
                return values[: len(wanted)]

            return evaluate

        vector = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=evaluator([self._loss, self._packed_loss_grad], loss_callback),
            equality_funcs=[evaluator(scalar) for scalar in self._equalities],
            equality_grad_funcs=[evaluator(gradient) for gradient in self._equality_grads],
            inequality_funcs=[evaluator(scalar) for scalar in self._inequalities],
            inequality_grad_funcs=[evaluator(gradient) for gradient in self._inequality_grads],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda xk: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        parts = zip(self._update_placeholders, self._parts(vector), strict=True)
        session.run(self._var_updates, dict(parts), **run_kwargs)

    def _minimize(
        self, initial_val: _Vector, loss_grad_func: Callable[..., Any], **kwargs: Any
    ) -> _Vector:
        """The best vector.

        Args:
            initial_val: The first vector.
            loss_grad_func: Takes a vector, returns the loss and its gradient.
            **kwargs: `equality_funcs`, `equality_grad_funcs`, `inequality_funcs`,
                `inequality_grad_funcs`, `packed_bounds`, `step_callback`, `optimizer_kwargs`.
        """
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() "
            "method."
        )


def _packed(tensors: Sequence[Any]) -> tf.Tensor:
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], 0)


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimises by `scipy.optimize.minimize`, with `method="L-BFGS-B"` by default.

    Args: those of `ExternalOptimizerInterface`; all others are for SciPy.

    Raises:
        ValueError: From minimize: an argument for SciPy that is set here.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self, initial_val: _Vector, loss_grad_func: Callable[..., Any], **kwargs: Any
    ) -> _Vector:
        given = dict(kwargs["optimizer_kwargs"])
        constraints = [
            {"type": kind, "fun": _one(scalar), "jac": _one(gradient)}
            for kind, what in (("eq", "equality"), ("ineq", "inequality"))
            for scalar, gradient in zip(
                kwargs[f"{what}_funcs"], kwargs[f"{what}_grad_funcs"], strict=True
            )
        ]
        own = {
            "jac": True,
            "callback": kwargs["step_callback"],
            "method": given.pop("method", self._DEFAULT_METHOD),
            "constraints": constraints,
            "bounds": kwargs["packed_bounds"],
        }
        if "bounds" in given:
            raise ValueError("Bounds must be set using the var_to_bounds argument")
        for name in own.keys() & given.keys():
            raise ValueError(
                f"Optimizer keyword arg '{name}' is set automatically and cannot be injected "
                "manually"
            )

        def loss_and_gradient(vector: _Vector) -> tuple[Any, _Vector]:
            loss, gradient = loss_grad_func(vector)
            return loss, gradient.astype("float64")

        # SciPy counts in float64; its Fortran converted other types, and its C does not.
        start = initial_val.astype("float64")
        result = _scipy_optimize().minimize(loss_and_gradient, start, **own, **given)
        _v1.logging.info(
            "Optimization terminated with:\n  Message: %s\n  Objective function value: %f",
            result.message,
            result.fun,
        )
        for what, name in (("iterations", "nit"), ("functions evaluations", "nfev")):
            if hasattr(result, name):
                _v1.logging.info("  Number of %s: %d", what, getattr(result, name))
        return cast(_Vector, result["x"])


def _one(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """The function that returns the only value of another."""
    return lambda vector: evaluate(vector)[0]


def _scipy_optimize() -> Any:
    try:
        import scipy.optimize
    except ModuleNotFoundError as error:
        error.msg += ", which ScipyOptimizerInterface calls: pip install scipy"
        raise
    return scipy.optimize
