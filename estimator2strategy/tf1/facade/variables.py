"""`tf.Variable` of TF 1.15: makes variables as it did, and is the class of all of them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine import behavior

_v1 = tf.compat.v1.Variable


@behavior.entering
def _made(*args: Any, **kwargs: Any) -> Any:
    return _v1(*args, **kwargs)


class _AnyVariable(type):
    """Today's `get_variable` makes variables that are no `tf.compat.v1.Variable`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Variable:
            return _made(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Variable:
            return isinstance(instance, (_v1, tf.Variable))
        return super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is Variable:
            return issubclass(subclass, (_v1, tf.Variable))
        return super().__subclasscheck__(subclass)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_v1, name)


class Variable(metaclass=_AnyVariable):
    """See `tf.compat.v1.Variable`."""

    _of_tf115 = True
    __doc__ = _v1.__doc__


def variable(*args: Any, **kwargs: Any) -> Any:
    """`variable_scope.variable`: `tf.Variable`, with the creators and collections of the scope."""
    return _made(*args, **kwargs)
