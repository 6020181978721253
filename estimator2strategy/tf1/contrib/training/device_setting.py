"""`ps_strategy` of `tf.train.replica_device_setter`: which parameter server gets a variable.

Source: tensorflow/contrib/training/python/training/device_setter.py, TensorFlow 1.15.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import cast

import tensorflow as tf


class RandomStrategy:
    """Takes a server by a hash of the variable's name: the same one in every process.

    Args:
        num_ps_tasks: The number of servers.
        seed: Another one gives other places.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0):
        self._num_tasks, self._seed = num_ps_tasks, seed

    def __call__(self, op: tf.Operation) -> int:
        digest = hashlib.md5(f"{op.name}_{self._seed}".encode(), usedforsecurity=False)
        return int(digest.hexdigest(), 16) % self._num_tasks


class GreedyLoadBalancingStrategy:
    """Takes the server that has the least load so far, the first of several.

    Args:
        num_tasks: The number of servers.
        load_fn: Operation -> its load, a number; `byte_size_load_fn` is one.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[tf.Operation], float]):
        self._load_fn, self._loads = load_fn, [0.0] * num_tasks

    def __call__(self, op: tf.Operation) -> int:
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: tf.Operation) -> int:
    """The bytes of the variable that an op makes, or of the one output of another op.

    The original counted one byte for the handle of a resource variable; here its values count.

    Raises:
        ValueError: The op has several outputs, or no static shape.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output")
    output, attributes = op.outputs[0], op.node_def.attr
    dtype, shape = output.dtype, output.shape
    if dtype == tf.resource and "dtype" in attributes:
        dtype, shape = tf.as_dtype(op.get_attr("dtype")), tf.TensorShape(op.get_attr("shape"))
    elif not shape.is_fully_defined() and "shape" in attributes:
        # Of a scalar variable the output's shape is set after the op was placed.
        shape = tf.TensorShape(op.get_attr("shape"))
    shape.assert_is_fully_defined()
    return cast(int, shape.num_elements() * dtype.size)
