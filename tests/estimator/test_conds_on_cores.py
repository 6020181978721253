"""Conds of a replica that use both its variables and what the host has: a table, a writer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.plan.host_resources import keep_order
from estimator2strategy.engine.runtime.devices import emulated_strategy

ROOT = Path(__file__).parents[2]
PROGRAM = "tests/programs/sums_in_branches.py"
tf1 = tf.compat.v1
tpu = estimator.tpu


@pytest.fixture(autouse=True)
def _two_cores(emulated_cores):
    emulated_cores(2)


def counting(params):
    """Batches of 0, 1, 2, ...; a core has one number of two."""
    numbers = tf.data.Dataset.range(100).map(lambda number: tf.cast(number, tf.float32))
    return numbers.batch(params["batch_size"], drop_remainder=True)


def model_of(model_dir, loss_of):
    """A TPUEstimator whose weight falls by 1 a step; `loss_of(numbers, weight, step)`."""

    def model_fn(features, labels, mode, params):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        step = tf1.train.get_global_step()
        loss = loss_of(features, weight, step)
        with tf.control_dependencies(tf1.summary.all_v2_summary_ops()):
            optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(1.0))
            train_op = optimizer.minimize(weight * 1.0, global_step=step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    config = tpu.RunConfig(model_dir=model_dir, tpu_config=tpu.TPUConfig(iterations_per_loop=3))
    sizes = {"train_batch_size": 2, "eval_batch_size": 2}
    # Emulated cores would refuse tables and writers, as a TPU does.
    return tpu.TPUEstimator(model_fn, config=config, strategy=emulated_strategy(2), **sizes)


def test_each_core_writes_summaries_with_a_writer_that_model_fn_made(model_dir, tmp_path):
    folder = tmp_path / "events"

    def loss_of(numbers, weight, step):
        writer = tf.summary.create_file_writer(str(folder))
        with (
            tf.control_dependencies([writer.init()]),
            writer.as_default(),
            tf.summary.record_if(tf.equal(step % 2, 0)),
        ):
            tf.summary.write("number", tf.reduce_mean(numbers), step=step)
        return tf.reduce_mean(numbers)

    model_of(model_dir, loss_of).train(counting, steps=5)
    (path,) = Path(folder).iterdir()
    events = [e for e in tf1.train.summary_iterator(str(path)) if e.summary.value]
    written = [(e.step, float(tf.make_ndarray(e.summary.value[0].tensor))) for e in events]
    assert sorted(written) == [(0, 0), (0, 1), (2, 4), (2, 5), (4, 8), (4, 9)]


def a_cond(number, found, plain):
    return tf.cond(number > 0, found, plain)


def a_cond_in_a_cond(number, found, plain):
    return tf.cond(number >= 0, lambda: tf.cond(number > 0, found, plain), plain)


def a_case_of_branches(number, found, plain):
    return tf.switch_case(tf.cast(number > 0, tf.int32), [plain, found])


@pytest.mark.parametrize("choose", [a_cond, a_cond_in_a_cond, a_case_of_branches])
@pytest.mark.evidence("branches", "cpu")
def test_a_branch_looks_into_a_table_and_reads_a_variable(model_dir, choose):
    def loss_of(numbers, weight, step):
        keys = tf.lookup.KeyValueTensorInitializer([1, 2, 3], [10.0, 20.0, 30.0], tf.int64)
        table = tf.lookup.StaticHashTable(keys, -1.0)
        number = tf.cast(numbers[0], tf.int64)
        return choose(number, lambda: table.lookup(number) + weight, lambda: weight * 1.0)

    model = model_of(model_dir, loss_of)
    model.train(counting, steps=3)
    # Numbers 0, 1 and 2, 3, when the weight is -3: (-3 + 7) / 2 and (17 + 27) / 2.
    for _ in range(2):
        assert model.evaluate(counting, steps=2)["loss"] == (2 + 22) / 2


@pytest.mark.evidence("branches", "cpu")
def test_cores_add_up_in_branches_and_loops_that_touch_no_variable():
    # In a process of its own, which can be ended: cores that wait for one another do so forever.
    run = [sys.executable, "-m", "estimator2strategy", "run", "--emulate-tpu-cores=2", PROGRAM]
    ran = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    # The sums over cores are 1 and 5, and of ten times the numbers 10 and 50.
    assert ran.stdout.splitlines() == ["33.0"] * 3, ran.stderr


def test_what_uses_a_resource_waits_for_conds_that_find_it():
    nodes = [
        tf1.NodeDef(name="first", input=["table"]),
        tf1.NodeDef(name="cond", input=["pred", "variable"]),
        tf1.NodeDef(name="other", input=["pred", "variable"]),
        tf1.NodeDef(name="next", input=["table", "key"]),
        tf1.NodeDef(name="last", input=["table", "key"]),
    ]
    keep_order(nodes, {"cond": {"table"}})
    assert [list(node.input) for node in nodes] == [
        ["table"],
        ["pred", "variable", "^first"],
        ["pred", "variable"],
        ["table", "key", "^cond"],
        ["table", "key"],
    ]
