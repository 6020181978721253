"""The functions that draw, in programs that XLA compiles, in place of random ops.

    function = draw_function(node, shape)     # an OpDef: random_ops.make_call(node, function)
    rewrite = drawing(rewrite)                # changes stateless ops, in functions too

A function has the inputs of the op; that of a seeded op also `key` and `counter`. There is one for
each op, dtype and shape, however many nodes call it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.plan import random_ops
from estimator2strategy.engine.plan.graph import NodeDef
from estimator2strategy.engine.plan.rewrites import Rewrite
from estimator2strategy.engine.replay import xla_draws


class _Spec(NamedTuple):
    """The ways in which functions differ.

    Attributes:
        op: The stateful op.
        dtype: Of the result.
        given: The type of the op's input that says the shape, or of what is shuffled.
        shape: Of the result, if it is known; else None.
    """

    op: str
    dtype: tf.DType
    given: tf.DType
    shape: tuple[int, ...] | None


class _Row(NamedTuple):
    """How an op draws.

    Attributes:
        dtype, given: The names of the attributes that hold those of its `_Spec`.
        inputs: The shape and dtype of its inputs.
        draw: Draws from them, the key and the counter.
    """

    dtype: str
    given: str
    inputs: Callable[[_Spec], list[tf.TensorSpec]]
    draw: Callable[..., tf.Tensor]


def _shape_alone(spec: _Spec) -> list[tf.TensorSpec]:
    return [tf.TensorSpec([None], spec.given)]


def _floats(draw: Callable[..., tf.Tensor]) -> _Row:
    def drawn(spec: _Spec, shape: tf.Tensor, key: tf.Tensor, counter: tf.Tensor) -> tf.Tensor:
        return draw(_static(spec, shape), key, counter, spec.dtype)

    return _Row("dtype", "T", _shape_alone, drawn)


def _shape_and_bounds(spec: _Spec) -> list[tf.TensorSpec]:
    return [*_shape_alone(spec), tf.TensorSpec([], spec.dtype), tf.TensorSpec([], spec.dtype)]


def _integers(spec: _Spec, shape: tf.Tensor, *rest: tf.Tensor) -> tf.Tensor:
    return xla_draws.uniform_int(_static(spec, shape), *rest)


def _shuffled(spec: _Spec) -> list[tf.TensorSpec]:
    return [tf.TensorSpec(spec.shape, spec.dtype)]


def _shuffle(spec: _Spec, *given: tf.Tensor) -> tf.Tensor:
    del spec
    return xla_draws.shuffle(*given)


def _logits_and_count(spec: _Spec) -> list[tf.TensorSpec]:
    return [tf.TensorSpec([spec.shape and spec.shape[0], None], spec.given), _COUNT]


def _classes(
    spec: _Spec, logits: tf.Tensor, count: tf.Tensor, key: tf.Tensor, counter: tf.Tensor
) -> tf.Tensor:
    samples = spec.shape[1] if spec.shape else count
    return xla_draws.multinomial(logits, samples, key, counter, spec.dtype)


_PLACE = (tf.TensorSpec([1], tf.uint64), tf.TensorSpec([2], tf.uint64))
_COUNT = tf.TensorSpec([], tf.int32)
_ROWS = {
    "RandomUniform": _floats(xla_draws.uniform),
    "RandomStandardNormal": _floats(xla_draws.normal),
    "TruncatedNormal": _floats(xla_draws.truncated_normal),
    "RandomUniformInt": _Row("Tout", "T", _shape_and_bounds, _integers),
    "RandomShuffle": _Row("T", "T", _shuffled, _shuffle),
    "Multinomial": _Row("output_dtype", "T", _logits_and_count, _classes),
}


def draw_function(node: NodeDef, shape: tf.TensorShape) -> Any:
    """The OpDef of the function that draws as a node does. Must be called in the `modern_world`.

    Args:
        node: A seeded random op; see `random_ops.is_drawn_in_xla`.
        shape: Of its result, as far as it is known.
    """
    row = _ROWS[node.op]
    dtype, given = (tf.as_dtype(node.attr[name].type) for name in (row.dtype, row.given))
    known = tuple(shape.as_list()) if shape.is_fully_defined() else None
    return _traced(_Spec(node.op, dtype, given, known)).function_def.signature


def drawing(rewrite: Rewrite) -> Rewrite:
    """The rewrite that also makes stateless random ops draw what the kernels for CPUs draw.

    They are those that the program calls itself: `tf.random.stateless_uniform`, for example.
    """

    def node(changed: NodeDef) -> None:
        rewrite.node(changed)
        op = random_ops.drawn_as(changed)
        if random_ops.scrambles(changed):
            function = _scrambling(changed.attr["Tseed"].type)
            random_ops.call(changed, function.function_def.signature)
        elif op is not None:
            of_shape = "Tshape" if changed.op.endswith("V2") else "T"
            seed = changed.attr["Tseed"].type if of_shape == "T" else None
            dtype, given = (tf.as_dtype(changed.attr[a].type) for a in ("dtype", of_shape))
            function = _stateless(_Spec(op, dtype, given, None), seed)
            random_ops.call(changed, function.function_def.signature)

    return Rewrite(f"{rewrite.tag}_drawn", node)


@functools.cache
def _scrambling(seed: int) -> Any:
    """The function of a seed, of a dtype, that makes a key and a counter of it."""
    with tf.init_scope():
        spec = tf.TensorSpec([2], tf.as_dtype(seed))
        return tf.function(xla_draws.scrambled, [spec], autograph=False).get_concrete_function()


@functools.cache
def _stateless(spec: _Spec, seed: int | None) -> Any:
    """The function of the inputs of a stateless op.

    Args:
        seed: The dtype of its seed; None: it has a key, a counter and an algorithm.
    """
    row, scalar = _ROWS[spec.op], tf.TensorSpec([], tf.int32)
    shape, *bounds = row.inputs(spec)
    given = [*_PLACE, scalar] if seed is None else [tf.TensorSpec([2], tf.as_dtype(seed))]

    def draw(shape: tf.Tensor, *rest: tf.Tensor) -> tf.Tensor:
        if seed is None:
            key, counter, _, *bounds = rest
        else:
            of_seed, *bounds = rest
            key, counter = xla_draws.scrambled(of_seed)
        return row.draw(spec, shape, *bounds, key, counter)

    with tf.init_scope():  # it outlives the function that calls it first
        function = tf.function(draw, [shape, *given, *bounds], autograph=False)
        return function.get_concrete_function()


@functools.cache
def _traced(spec: _Spec) -> Any:
    row = _ROWS[spec.op]
    function = tf.function(
        functools.partial(row.draw, spec), [*row.inputs(spec), *_PLACE], autograph=False
    )
    with tf.init_scope():  # it outlives the function that calls it first
        return function.get_concrete_function()


def _static(spec: _Spec, shape: tf.Tensor) -> Any:
    return shape if spec.shape is None else spec.shape
