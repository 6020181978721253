"""What codemods call the same is the same: the objects, the arguments, the numbers."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.check import tables
from estimator2strategy.facade import namespace
from estimator2strategy.migrate.rules import arguments, contrib, gfile, renames

RENAMES = sorted(renames.table().items())
CONTRIB = sorted(
    (name, contrib.home(row))
    for name, row in tables.contrib().symbols.items()
    if row.status != "refused" and contrib.home(row)
)
ARGUMENTS = [
    (function, old, new)
    for old, (new, functions) in arguments.ARGUMENTS.items()
    for function in functions
]


def reached(name):
    """What a program gets for a dotted name."""
    value = namespace.resolve("tf")
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def unwrapped(value):
    return inspect.unwrap(value) if callable(value) else value


def test_renamed_functions_are_the_same_and_are_in_tensorflow_2():
    others = [
        (old, new)
        for old, new in RENAMES
        if unwrapped(reached(old)) is not unwrapped(reached(new))
        or unwrapped(reached(new)) is not unwrapped(of_tensorflow_2(new))
    ]
    assert len(RENAMES) > 150
    assert others == []


def of_tensorflow_2(name):
    value = tf
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def test_names_outside_of_contrib_are_the_same():
    # What is in the modules of tf.contrib.keras is looked up in those of tf.keras.
    members = [(old, new) for old, new in CONTRIB if not inspect.ismodule(reached(new))]
    assert len(members) > 100
    assert [(old, new) for old, new in members if reached(old) is not reached(new)] == []


@pytest.mark.parametrize(("function", "old", "new"), ARGUMENTS)
def test_function_takes_both_names_of_an_argument(function, old, new):
    taken = inspect.signature(reached(function)).parameters
    assert old in taken
    assert new in taken


@pytest.mark.parametrize("old", sorted(gfile._NAMES))
def test_gfile_functions_exist_under_both_names(old):
    assert callable(reached(f"tf.gfile.{old}"))
    assert callable(reached(f"tf.io.gfile.{gfile._NAMES[old]}"))


@pytest.mark.parametrize("shape", [[7], [3, 4], [5, 5, 2, 8]])
def test_xavier_initializer_draws_what_glorot_uniform_draws(shape):
    def drawn(name):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            return session.run(reached(name)(seed=3)(shape, tf.float32))

    xavier = drawn("tf.contrib.layers.xavier_initializer")
    np.testing.assert_array_equal(xavier, drawn("tf.glorot_uniform_initializer"))
