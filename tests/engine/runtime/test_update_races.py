"""The line about an update that TF 1.15 did not order with a use of its variable."""

from __future__ import annotations

import pytest

from estimator2strategy.engine import worlds
from estimator2strategy.engine.plan.races import races
from estimator2strategy.engine.runtime import update_races
from tests import legacy_programs, updates_table

# Patterns that had one result on TF 1.15 although nothing in the graph orders them: the use needs
# no batch, and the update waits for one; or a rewrite merges the use with that of the update.
UNORDERED = {
    "moving average: in one `tf.group` with the step",
    "learning rate: computed before its decay, the optimizer after it",
    "a use written after the step, without waiting for it",
    "weight decay computed before, taken off after the step",
    "table: rows looked up in the next line, without waiting for the step",
}
NOT_FOUND = {
    # The loss alone raced: that is reported and trains nothing.
    "moving average: of the loss, divided by after its update",
    "two assigns, each on the result of the one before",
    # The graph orders all. TF 1.15's rewrites of it did not.
    "the variable is used after its `assign`",
}


def found(build, resource=False):
    import estimator2strategy.tf1 as tf

    with worlds.recording(1, tf115=True) as graph, worlds.legacy_world():
        x, y = tf.placeholder(tf.float32, [2, 1]), tf.placeholder(tf.float32, [2, 1])
        tf.get_variable_scope().set_use_resource(resource)
        tf.train.create_global_step()
        _, step = build(tf, x, y)
        return races(graph, [step.op.name if hasattr(step, "op") else step.name])


@pytest.fixture(scope="module")
def racing():
    with legacy_programs.imported("alternating") as program:
        return {
            kind: {
                case
                for case, build in program.PATTERNS.items()
                if found(lambda tf, x, y, build=build: build(x, y), kind == "resource")
            }
            for kind in program.KINDS
        }


def test_a_pattern_that_raced_on_tf_1_15_is_found_and_no_other(racing):
    recorded = updates_table.golden()["outcomes"]["reference"]
    raced = recorded.keys() - updates_table.stable("reference").keys()
    assert racing["reference"] - UNORDERED == raced - NOT_FOUND - UNORDERED


def test_a_resource_variable_is_read_by_a_copy(racing):
    assert racing["resource"] == set()


OPTIMIZERS = {
    "GradientDescentOptimizer": {},
    "MomentumOptimizer": {"momentum": 0.9},
    "AdamOptimizer": {},
    "AdagradOptimizer": {},
    "AdadeltaOptimizer": {},
    "FtrlOptimizer": {},
    "RMSPropOptimizer": {"momentum": 0.5, "centered": True},
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_orders_its_own_updates(name):
    def build(tf, x, y):
        table = tf.get_variable("rows", [5, 4])
        rows = tf.reshape(tf.nn.embedding_lookup(table, tf.cast(x, tf.int32)), [2, 4])
        hidden = tf.layers.batch_normalization(tf.layers.dense(rows, 4, "relu"), training=True)
        hidden = tf.layers.dense(hidden, 4, kernel_regularizer=tf.nn.l2_loss)
        tied = tf.matmul(hidden, table, transpose_b=True)
        loss = tf.reduce_mean(tf.square(y - tied)) + tf.losses.get_regularization_loss()
        step = tf.train.get_global_step()
        rate = tf.train.exponential_decay(0.1, step, 10, 0.9)
        optimizer = getattr(tf.train, name)(rate, **OPTIMIZERS[name])
        pairs = optimizer.compute_gradients(loss)
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 1.0)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = optimizer.apply_gradients(zip(clipped, tf.trainable_variables()), step)
        average = tf.train.ExponentialMovingAverage(0.9, step)
        with tf.control_dependencies([train]):
            return loss, average.apply(tf.trainable_variables())

    assert found(build) == []


def test_branches_and_loops_that_only_read_are_no_writes():
    def build(tf, x, y):
        w = tf.get_variable("w", [])
        seen = tf.get_variable("seen", [], trainable=False)
        loss = tf.reduce_mean(tf.square(y - x * w))
        read = tf.cond(tf.reduce_sum(x) > 0, lambda: seen * 2.0, lambda: seen + 1.0)
        kept = tf.assign(tf.get_variable("kept", [], trainable=False), read)
        return loss, tf.group(kept, tf.train.AdamOptimizer().minimize(loss))

    assert found(build) == []


def test_a_branch_that_writes_races_with_a_use():
    def build(tf, x, y):
        w = tf.get_variable("w", [])
        loss = tf.reduce_mean(tf.square(y - x * w))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        reset = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.assign(w, 0.0), lambda: tf.identity(w))
        return loss, tf.group(reset, step)

    assert {race.variable for race in found(build)} == {"w"}


def test_the_log_names_variable_and_lines_once(monkeypatch):
    lines = []
    monkeypatch.setattr("tensorflow.compat.v1.logging.warn", lambda *args: lines.append(args))
    update_races._say.cache_clear()
    with legacy_programs.imported("alternating") as program:
        for _ in range(2):
            program.by_estimator("target network: copied in one `tf.group` with the step", False)
        program.by_estimator("target network: copied after the step", False)
    told = [args[-1] for args in lines if "did not order" in args[-1]]
    assert len(told) == 1
    assert "variable 'w' (at " in told[0]
    assert "alternating.py:" in told[0]
