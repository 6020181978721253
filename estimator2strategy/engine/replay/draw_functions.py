"""The functions that draw, in programs that XLA compiles, in place of random ops.

    function = draw_function(node, shape)     # an OpDef: random_ops.make_call(node, function)
    function = draw_inside(node, row, rows)   # for one in a function: draws_inside.give_streams
    rewrite = drawing(rewrite)                # changes stateless ops, in functions too

A function has the inputs of the op; that of a seeded op also `key` and `counter`, or the variable
in which its place stands. There is one for each op, dtype and shape, however many nodes call it.
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
        before_seed: The number of inputs that a stateless op has before its seed.
    """

    dtype: str
    given: str
    inputs: Callable[[_Spec], list[tf.TensorSpec]]
    draw: Callable[..., tf.Tensor]
    before_seed: int = 1


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
    "Multinomial": _Row("output_dtype", "T", _logits_and_count, _classes, before_seed=2),
}


def draw_function(node: NodeDef, shape: tf.TensorShape) -> Any:
    """The OpDef of the function that draws as a node does. Must be called in the `modern_world`.

    Args:
        node: A seeded random op; see `random_ops.is_drawn_in_xla`.
        shape: Of its result, as far as it is known.
    """
    known = tuple(shape.as_list()) if shape.is_fully_defined() else None
    return _traced(_spec(node.op, node, known)).function_def.signature


def draw_inside(node: NodeDef, row: int, rows: int) -> Any:
    """As `draw_function`, for a node whose place stands in a variable that it is given.

    Args:
        node: As there.
        row, rows: The number of its row in the variable, and that of all rows.
    """
    function = _from_variable(_spec(node.op, node), node.attr["seed"].i, row, rows)
    return function.function_def.signature


def _spec(op: str, node: NodeDef, shape: tuple[int, ...] | None = None) -> _Spec:
    """The spec of a node that draws as the stateful `op` does."""
    row = _ROWS[op]
    dtype, given = (tf.as_dtype(node.attr[name].type) for name in (row.dtype, row.given))
    return _Spec(op, dtype, given, shape)


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
            function = _stateless(*_stateless_spec(op, changed))
            random_ops.call(changed, function.function_def.signature)

    return Rewrite(f"{rewrite.tag}_drawn", node)


def _stateless_spec(op: str, node: NodeDef) -> tuple[_Spec, int | None]:
    """The spec of a stateless op that draws as `op` does, and the dtype of its seed, if any."""
    seed = None if node.op.endswith("V2") else node.attr["Tseed"].type
    if op == "Multinomial":
        return _spec(op, node), seed
    of_shape = "Tshape" if seed is None else "T"
    dtype, given = (tf.as_dtype(node.attr[name].type) for name in ("dtype", of_shape))
    return _Spec(op, dtype, given, None), seed


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
    row = _ROWS[spec.op]
    inputs, seeds = row.inputs(spec), [tf.TensorSpec([2], tf.as_dtype(seed or tf.int64))]
    if seed is None:
        seeds = [*_PLACE, tf.TensorSpec([], tf.int32)]
    before = row.before_seed

    def draw(*given: tf.Tensor) -> tf.Tensor:
        of_seed = given[before : before + len(seeds)]
        key, counter = of_seed[:2] if seed is None else xla_draws.scrambled(*of_seed)
        return row.draw(spec, *given[:before], *given[before + len(seeds) :], key, counter)

    with tf.init_scope():  # it outlives the function that calls it first
        signature = [*inputs[:before], *seeds, *inputs[before:]]
        return tf.function(draw, signature, autograph=False).get_concrete_function()


@functools.cache
def _from_variable(spec: _Spec, seed: int, row: int, rows: int) -> Any:
    """The function of the inputs of a seeded op, and of the variable in whose row its place is."""
    of_op = _ROWS[spec.op]

    def draw(*given: tf.Tensor) -> tf.Tensor:
        *inputs, handle = given
        places = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)
        counter = tf.bitcast(tf.ensure_shape(places, [rows, 2])[row], tf.uint64)
        key = tf.constant([seed % 2**64], tf.uint64)
        drawn = of_op.draw(spec, *inputs, key, counter)
        size = tf.shape(drawn, out_type=tf.int64), tf.size(drawn, tf.int64)
        moved = random_ops.moved(spec.op, *size)
        by = tf.scatter_nd([[row, 0]], [tf.cast(moved, tf.int64)], [rows, 2])
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=by)
        return drawn

    with tf.init_scope():  # it outlives the function that calls it first
        signature = [*of_op.inputs(spec), tf.TensorSpec([], tf.resource)]
        return tf.function(draw, signature, autograph=False).get_concrete_function()


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
