"""The optimizer of a canned Estimator: a name, an instance, or a function that returns one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_switches

tf1 = tf.compat.v1

_V1 = {
    "Adagrad": tf1.train.AdagradOptimizer,
    "Adam": tf1.train.AdamOptimizer,
    "Ftrl": tf1.train.FtrlOptimizer,
    "RMSProp": tf1.train.RMSPropOptimizer,
    "SGD": tf1.train.GradientDescentOptimizer,
}
# Name -> class of tf-keras, which is imported late because it is slow to import.
_V2 = {"Adagrad": "Adagrad", "Adam": "Adam", "Ftrl": "Ftrl", "RMSProp": "RMSprop", "SGD": "SGD"}


def get_optimizer_instance(opt: Any, learning_rate: Any = None) -> tf1.train.Optimizer:
    """The optimizer of TF 1 that a program means.

    Args:
        opt: "Adagrad", "Adam", "Ftrl", "RMSProp" or "SGD"; an optimizer of `tf.compat.v1.train`;
            or a function that returns one, called while the graph is built.
        learning_rate: For names.

    Raises:
        ValueError: There is no such name, no rate for it, or the object is no such optimizer.

    Source: `get_optimizer_instance`, tensorflow_estimator 2.15 canned/optimizers.py.
    """
    if isinstance(opt, str):
        cls = _by_name(opt, _V1)
        if not learning_rate:
            raise ValueError("learning_rate must be specified when opt is string.")
        return cls(learning_rate=learning_rate)
    if callable(opt):
        opt = opt()
    if not isinstance(opt, tf1.train.Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {opt}")
    return opt


def get_optimizer_instance_v2(opt: Any, learning_rate: Any = None) -> Any:
    """The optimizer of tf-keras that a program means; it counts its steps in the global step.

    Args:
        opt: A name as above, an optimizer of `tf_keras.optimizers` or of its `legacy`, or a
            function that returns one, called while the graph is built.
        learning_rate: For names; by default the rate that the class has.

    Returns:
        An optimizer of `tf_keras.optimizers.legacy`. An instance stays as it is and is copied:
        its variables would belong to the first graph that it was used in.

    Raises:
        ValueError: There is no such name, or the object is no such optimizer.

    Source: `get_optimizer_instance_v2`, tensorflow_estimator 2.15 canned/optimizers.py. That one
    takes legacy optimizers alone; all of `tf.keras.optimizers` were such until TF 2.10.
    """
    from tf_keras import optimizers

    if isinstance(opt, str):
        cls = getattr(optimizers.legacy, _by_name(opt, _V2))
        return cls(learning_rate=learning_rate) if learning_rate else cls()
    return _legacy(opt()) if callable(opt) else _copied(_legacy(opt))


def _copied(opt: Any) -> Any:
    try:
        return opt.from_config(opt.get_config())
    except (NotImplementedError, TypeError):  # a program's own, without a config: for one graph
        return opt


def _by_name(name: str, table: Mapping[str, Any]) -> Any:
    if name not in table:
        raise ValueError(
            f"Unsupported optimizer name: {name}. Supported names are: {tuple(sorted(table))}"
        )
    return table[name]


def _legacy(opt: Any) -> Any:
    """An optimizer of tf-keras as its legacy one: only those make a train op in a graph."""
    from tf_keras import optimizers

    if isinstance(opt, optimizers.legacy.Optimizer):
        return opt
    if not isinstance(opt, optimizers.Optimizer):
        raise ValueError(
            f"The given object is not a tf.keras.optimizers.Optimizer instance. Given: {opt}"
        )
    return _made_in_graph(opt) if tf.is_symbolic_tensor(opt.iterations.handle) else _converted(opt)


def _converted(opt: Any) -> Any:
    import tf_keras

    with _tf_switches.eager_mode():  # its learning rate is a variable of TF 2
        return tf_keras.__internal__.optimizers.convert_to_legacy_optimizer(opt)


def _made_in_graph(opt: Any) -> Any:
    """The legacy one of an optimizer whose variables are of the graph that is being built.

    No step reads them, so they are no longer variables of the program, and of its checkpoints.
    """
    from tf_keras.optimizers import schedules

    variables = tf1.get_collection_ref(tf1.GraphKeys.GLOBAL_VARIABLES)
    own = (opt.iterations, opt.learning_rate)
    unread = {id(each) for each in own} - {id(tf1.train.get_global_step())}
    variables[:] = [each for each in variables if id(each) not in unread]
    if isinstance(opt._learning_rate, schedules.LearningRateSchedule):
        return _converted(opt)
    rate = opt.learning_rate.initial_value  # a number, or a tensor: a decay over the global step
    known = tf.get_static_value(rate)
    twin = copy.copy(opt)  # the program may give the same to another model
    twin.learning_rate = schedules.ExponentialDecay(1.0, 1, 1.0)  # of which a config can be made
    legacy = _converted(twin)
    legacy.learning_rate = rate if known is None else known.item()
    return legacy
