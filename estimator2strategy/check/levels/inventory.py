"""What is in a recording, counted: its variables, random ops, sums over cores, metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator

import tensorflow as tf

from estimator2strategy.check.facts import Fact, Number, Table
from estimator2strategy.check.levels.subject import Recorded

tf1 = tf.compat.v1


def facts(recorded: Recorded) -> Iterator[Fact]:
    """What is worth knowing of a recording."""
    yield from _variables(recorded)


def variables(recorded: Recorded) -> list[tf.Variable]:
    """All variables of a recording, local ones too, in the order in which they were made."""
    graph = recorded.graph
    keys = (tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.LOCAL_VARIABLES)
    found = {v.name: v for key in keys for v in graph.get_collection(key)}
    return list(found.values())


def size_in_bytes(variable: tf.Variable) -> int:
    """How much memory a variable takes; 0 where its shape is not known."""
    shape = variable.shape.as_list() if variable.shape.rank is not None else [None]
    return 0 if None in shape else math.prod(shape) * variable.dtype.base_dtype.size


def _variables(recorded: Recorded) -> Iterator[Fact]:
    graph = recorded.graph
    trainable = {v.name for v in graph.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)}
    made = graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
    rows = tuple(
        (
            v.name.removesuffix(":0"),
            "x".join(map(str, v.shape.as_list())) or "scalar",
            v.dtype.base_dtype.name,
            size_in_bytes(v),
            "yes" if v.name in trainable else "no",
        )
        for v in made
    )
    yield Number(f"{recorded.mode}: variables", len(rows))
    total = sum(map(size_in_bytes, made))
    yield Number(f"{recorded.mode}: variables take", total, "bytes")
    yield Table(
        f"{recorded.mode}: variables", ("name", "shape", "dtype", "bytes", "trainable"), rows
    )
