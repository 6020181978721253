"""The facade's own functions and classes, in the place of TensorFlow's: they build as TF 1.15 did.

    stand_in_for(tf1.cond)    # `tf.cond` of TF 1.15

A `Graph` of the facade is TF 1.15's from the first op on. In graphs that other code has made, the
functions in `_BUILDERS` enter TF 1.15's behaviour while they run; see `engine/behavior.py`. Only
those are replaced that make variables, conds or loops, so all else is TensorFlow's very own.
"""

from __future__ import annotations

import fnmatch
import functools
import re
import sys
import types
from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import behavior
from estimator2strategy.engine.legacy_code import OF_TF115
from estimator2strategy.engine.record.input_files import warn_of_file
from estimator2strategy.tf1.facade import modes, static_shapes

tf1 = tf.compat.v1

# Modules of `tf.compat.v1` -> names in them; "assert_*" is all names that start so.
_BUILDERS = {
    "": (
        "Assert assert_* case cond confusion_matrix create_partitioned_variables foldl foldr "
        "get_local_variable get_variable map_fn scan while_loop"
    ),
    "feature_column": "input_layer linear_model",
    "losses": "*",
    "metrics": "*",
    "nn": "bidirectional_dynamic_rnn dynamic_rnn raw_rnn static_*",
    "train": (
        "batch batch_join create_global_step get_or_create_global_step input_producer "
        "limit_epochs maybe_* piecewise_constant* range_input_producer shuffle_batch "
        "shuffle_batch_join slice_input_producer string_input_producer"
    ),
}


# Functions that ask for v2 behaviour: module and name -> their name in `modes.py`.
_OF_V2_BEHAVIOR = {
    ("tensorflow.python.tf2", "enabled"): "v2_behavior_enabled",
    ("tensorflow.python.framework.test_util", "run_v1_only"): "run_v1_only",
}

# Modules that are the facade's own, because of what is in them. Others are TensorFlow's very own.
MODULES = frozenset(
    {
        "tf.python.framework.ops",
        "tf.python_io",
        *(f"tf.{path}" for path in (*_BUILDERS, *static_shapes.MODULES) if path),
    }
)


def stand_in_for(value: Any) -> Any:
    """The facade's own function or class for one of TensorFlow's; `value` if it has none."""
    if _is_estimator(value):
        return estimator_of_tf115(value)
    if isinstance(value, types.FunctionType):
        if value is tf1.set_random_seed:
            return set_random_seed
        if value is tf1.io.tf_record_iterator:
            return tf_record_iterator
        if own := _OF_V2_BEHAVIOR.get((value.__module__, value.__name__)):
            return getattr(modes, own)
        if known := static_shapes.stand_in_for(value):
            return known
        return entering(value) if id(value) in _builders() else value
    return _classes().get(value, value) if isinstance(value, type) else value


def _is_estimator(value: Any) -> bool:
    # Not imported for this: the facade's first name is to be there at once.
    module = sys.modules.get("estimator2strategy.estimator.estimator")
    base = getattr(module, "Estimator", None)
    return base is not None and isinstance(value, type) and issubclass(value, base)


@functools.wraps(tf1.set_random_seed)
def set_random_seed(seed: int | None) -> None:
    tf1.set_random_seed(seed)
    behavior.mark_seeded(tf1.get_default_graph())


@functools.wraps(tf1.io.tf_record_iterator)
def tf_record_iterator(path: Any, options: Any = None) -> Any:
    if isinstance(path, str):
        kind = tf1.io.TFRecordOptions.get_compression_type_string(options)
        warn_of_file("tf_record_iterator", path, frozenset([kind]))
    return tf1.io.tf_record_iterator(path, options)


@functools.cache
def entering(function: Callable[..., Any]) -> Callable[..., Any]:
    """`behavior.entering(function)`: the same one at each call."""
    return behavior.entering(function)


@functools.cache
def _builders() -> dict[int, Callable[..., Any]]:
    stand_ins: dict[int, Callable[..., Any]] = {}
    for path, patterns in _BUILDERS.items():
        module = getattr(tf1, path) if path else tf1
        is_builder = re.compile("|".join(map(fnmatch.translate, patterns.split()))).match
        for name in filter(is_builder, dir(module)):
            function = getattr(module, name)
            if isinstance(function, types.FunctionType):
                stand_ins[id(function)] = function
    return stand_ins


@functools.cache
def _classes() -> dict[type, type]:
    return {
        tf.Graph: class_of_tf115(tf.Graph, _graph),
        tf.TensorArray: class_of_tf115(tf.TensorArray, entering(_tensor_array)),
    }


def _graph(*args: Any, **kwargs: Any) -> tf.Graph:
    graph = tf.Graph(*args, **kwargs)
    behavior.install()
    behavior.mark(graph, behavior.TF115)
    return graph


def _tensor_array(*args: Any, **kwargs: Any) -> tf.TensorArray:
    return tf.TensorArray(*args, **kwargs)


def class_of_tf115(real: type, make: Callable[..., Any]) -> type:
    """A class whose calls give `make(...)`, an instance of `real`; all those are instances of it.

    Subclasses of it are subclasses of `real`, and made as such.
    """

    class OfTf115(type(real)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return make(*args, **kwargs) if cls is made else super().__call__(*args, **kwargs)

        def __instancecheck__(cls, instance: object) -> bool:
            return type.__instancecheck__(real if cls is made else cls, instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return type.__subclasscheck__(real if cls is made else cls, subclass)

    attributes = {"__doc__": real.__doc__, "__module__": real.__module__, OF_TF115: True}
    made = OfTf115(real.__name__, (real,), attributes)
    return made


def _new(real: Any) -> Any:
    """A blank Estimator of TF 1.15, for pickle and copy to fill."""
    made: Any = estimator_of_tf115(real)
    return made.__new__(made)


@functools.cache
def estimator_of_tf115(real: Any) -> type:
    """An Estimator class for programs of TF 1.15, in which variables count as references.

    Instances of `real` and of its subclasses are instances of it too.
    """
    if real._of_tf115:
        return cast(type, real)

    def subclasshook(cls: type, subclass: type) -> Any:
        # Not by `issubclass`, which would ask all subclasses of `real`, and so this one, again.
        return real in subclass.__mro__ if cls is made else NotImplemented

    def reduce_ex(self: Any, protocol: Any) -> Any:
        # pickle finds `real` by the name of this class.
        if type(self) is made:
            return _new, (real,), self.__getstate__()
        return object.__reduce_ex__(self, protocol)

    attributes = {
        "__doc__": real.__doc__,
        "__module__": real.__module__,
        "__qualname__": real.__qualname__,
        "__reduce_ex__": reduce_ex,
        "__subclasshook__": classmethod(subclasshook),
        OF_TF115: True,
    }
    # Attributes that a program sets in `tf.estimator.Estimator` are in its subclasses, too.
    parents = [estimator_of_tf115(base) for base in real.__bases__ if _is_estimator(base)]
    made = type(real)(real.__name__, (real, *parents), attributes)
    return cast(type, made)
