"""What codemods call the same is the same: the objects, the arguments, the numbers."""

from __future__ import annotations

import inspect
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.names import tables
from estimator2strategy.tf1.facade import namespace
from estimator2strategy.tools.migrate.apply import apply
from estimator2strategy.tools.migrate.codemod import codemods
from estimator2strategy.tools.migrate.codemods import hooks_to_callbacks, new_calls, new_names
from tests.strategies import mirrored

RENAMES = sorted(new_names.renames().items())
CONTRIB = sorted(
    (name, new_names.contrib_home(row))
    for name, row in tables.contrib().symbols.items()
    if row.status != "refused" and new_names.contrib_home(row)
)
ARGUMENTS = [
    (function, old, new)
    for old, (new, functions) in new_calls.ARGUMENTS.items()
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
    assert len(RENAMES) == 193
    assert others == []


def of_tensorflow_2(name):
    value = tf
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def test_names_outside_of_contrib_are_the_same():
    # What is in the modules of tf.contrib.keras is looked up in those of tf.keras.
    members = [(old, new) for old, new in CONTRIB if not inspect.ismodule(reached(new))]
    assert len(members) == 211
    others = [pair for pair in members if len({id(unwrapped(reached(name))) for name in pair}) > 1]
    assert others == []


@pytest.mark.parametrize(("function", "old", "new"), ARGUMENTS)
def test_function_takes_both_names_of_an_argument(function, old, new):
    taken = inspect.signature(reached(function)).parameters
    assert old in taken
    assert new in taken


@pytest.mark.parametrize("old", sorted(new_calls._NAMES))
def test_gfile_functions_exist_under_both_names(old):
    assert callable(reached(f"tf.gfile.{old}"))
    assert callable(reached(f"tf.io.gfile.{new_calls._NAMES[old]}"))


@pytest.mark.parametrize("shape", [[7], [3, 4], [5, 5, 2, 8]])
def test_xavier_initializer_draws_what_glorot_uniform_draws(shape):
    def drawn(name):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            return session.run(reached(name)(seed=3)(shape, tf.float32))

    xavier = drawn("tf.contrib.layers.xavier_initializer")
    np.testing.assert_array_equal(xavier, drawn("tf.glorot_uniform_initializer"))


@pytest.mark.parametrize(
    "made",
    [
        "batch_and_drop_remainder(batch_size=3)",
        "padded_batch_and_drop_remainder(3, [None])",
        "padded_batch_and_drop_remainder(3, padded_shapes=[7], padding_values=5)",
    ],
)
def test_contrib_transformation_makes_the_same_batches(made):
    program = (
        "import estimator2strategy.tf1 as tf\n\n"
        "rows = tf.data.Dataset.range(1, 6).map(lambda n: tf.fill([n], tf.cast(n, tf.int32)))\n"
        "rows = rows.map(lambda row: tf.pad(row, [[0, 5 - tf.size(row)]]))\n"
        f"batches = rows.apply(tf.contrib.data.{made})\n"
    )
    outcome = apply(program, [codemods()["contrib-datasets"]])
    assert "contrib" not in outcome.text
    before, after = batches_of(program), batches_of(outcome.text)
    assert len(before) == 1  # of five rows, the last two are dropped
    np.testing.assert_array_equal(after, before)


def batches_of(program):
    names = {}
    exec(program, names)
    return [np.asarray(batch) for batch in names["batches"]]


# Calls of tf.train, of which the codemod makes Keras schedules; `step` is the global step.
SCHEDULES = [
    "tf.train.exponential_decay(0.1, step, 7, 0.5)",
    "tf.train.exponential_decay(0.1, step, 7, decay_rate=0.5, staircase=True)",
    "tf.train.inverse_time_decay(0.1, step, 7, 0.5, True)",
    "tf.train.polynomial_decay(0.1, step, 20)",
    "tf.train.polynomial_decay(learning_rate=0.1, global_step=step, decay_steps=9, "
    "end_learning_rate=0.01, power=2.0, cycle=True)",
    "tf.train.cosine_decay(0.1, step, 20, alpha=0.1)",
    "tf.train.cosine_decay_restarts(0.1, step, 5, 2.0)",
    "tf.train.piecewise_constant(step, [5, 9], [0.1, 0.05, 0.01])",
]


@pytest.mark.parametrize("call", SCHEDULES)
def test_schedule_has_the_same_rate_at_each_step(call):
    program = f"import estimator2strategy.tf1 as tf\n\nrate = {call}\n"
    outcome = apply(program, [codemods()["schedules"]])
    assert sum(outcome.counts.values()) == 1
    legacy, keras = rates(program), rates(outcome.text)
    np.testing.assert_allclose(keras, legacy, rtol=1e-6)
    assert len(set(legacy)) > 1


def rates(program):
    """The learning rate at each of 25 steps."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        step = tf.compat.v1.placeholder(tf.int64, [])
        names = {"step": step}
        exec(program, names)
        return [float(session.run(names["rate"], {step: n})) for n in range(25)]


def test_dataset_function_gives_each_replica_its_part():
    program = """
import estimator2strategy.tf1 as tf


def train_input_fn(params):
    return tf.data.Dataset.range(16).batch(params["batch_size"])
"""
    names = {}
    exec(apply(program, [codemods()["dataset-functions"]]).text, names)
    strategy = mirrored(2)
    made = names["dataset_fn_of"](names["train_input_fn"], {"other": 1}, 8)
    batches = strategy.distribute_datasets_from_function(made)
    parts = strategy.experimental_local_results(next(iter(batches)))
    assert [part.numpy().tolist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_facade_is_its_own_compat_v1():
    for name in ("tf.get_variable", "tf.AUTO_REUSE", "tf.nn.dropout", "tf.train.AdamOptimizer"):
        assert reached(name) is reached(f"tf.compat.v1.{name.removeprefix('tf.')}")


def test_callbacks_that_stand_for_stock_hooks_are_in_keras_3():
    """`fit` of a LegacyModel is Keras 3's, where `add_metric` is refused."""
    for advice in hooks_to_callbacks._STOCK.values():
        for name in re.findall(r"callbacks\.(\w+)", advice):
            assert hasattr(keras.callbacks, name)
        assert "model." not in advice


def test_callback_made_of_a_hook_stops_a_training():
    program = """
import estimator2strategy.tf1 as tf


class Stopper(tf.train.SessionRunHook):
    def __init__(self, steps):
        self.steps = steps

    def begin(self):
        self.seen = 0

    def after_run(self, run_context, run_values):
        self.seen += 1
        if self.seen == self.steps:
            run_context.request_stop()
"""
    names = {}
    exec(apply(program, [codemods()["hooks-to-callbacks"]]).text, names)
    keras = names["tf"].keras
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    callback = names["StopperCallback"](3)
    model.fit(np.ones([10, 1]), np.ones([10, 1]), batch_size=1, verbose=0, callbacks=[callback])
    assert callback.seen == 3
