"""Steps that XLA compiles train as those that it does not, around whatever the host has to do."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.plan import segments, xla_kernels
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.engines import jit
from estimator2strategy.errors import UnsupportedError
from tests.engine.runtime.programs import (
    Steps,
    cores_estimator,
    falling,
    ones,
)

tf1 = tf.compat.v1
COMPILED = estimator.TrainingOptions(jit_compile=True)


@pytest.fixture
def programs(monkeypatch):
    """The ops of each program that is made."""
    seen = []
    make = jit.Program.__init__

    def noted(self, replay, segment, checks):
        make(self, replay, segment, checks)
        seen.append(segment.ops)

    monkeypatch.setattr(jit.Program, "__init__", noted)
    return seen


def classifier(features, labels, mode):
    """Two layers, Adam: several variables, slots, an update that no two steps share."""
    hidden = tf1.nn.relu(dense(features, 16, "hidden"))
    logits = dense(hidden, 3, "logits")
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf1.train.AdamOptimizer(0.01).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def dense(inputs, units, name):
    kernel = tf1.get_variable(f"{name}/kernel", [inputs.shape[-1], units])
    return inputs @ kernel + tf1.get_variable(f"{name}/bias", [units])


def digits(batches=None):
    """input_fn: batches of one shape, without end if `batches` is None."""

    def input_fn():
        rng = np.random.default_rng(0)
        features = rng.normal(size=(64, 8)).astype(np.float32)
        labels = rng.integers(0, 3, 64).astype(np.int32)
        data = tf.data.Dataset.from_tensor_slices((features, labels)).repeat()
        data = data.batch(4, drop_remainder=True)
        return data if batches is None else data.take(batches)

    return input_fn


def one_by_one():
    return tf.data.Dataset.from_tensors(tf.ones([])).repeat().batch(1, drop_remainder=True)


def trained(folder, jit_compile, model_fn=classifier, input_fn=None, steps=20, **kwargs):
    """(losses by step, variables by name) of a training."""
    config = {"tf_random_seed": 1, "save_summary_steps": None, "log_step_count_steps": None}
    config = estimator.RunConfig(str(folder), **{**config, **kwargs})
    options = jit_compile
    if isinstance(jit_compile, bool):
        options = estimator.TrainingOptions(jit_compile=jit_compile)
    model = estimator.Estimator(model_fn, config=config, options=options)
    losses = Losses()
    model.train(input_fn or digits(), hooks=[losses], steps=steps)
    values = {name: model.get_variable_value(name) for name in model.get_variable_names()}
    return losses.seen, values


class Losses(tf1.train.SessionRunHook):
    def __init__(self):
        self.seen = []

    def before_run(self, run_context):
        (loss,) = {*tf1.get_collection(tf1.GraphKeys.LOSSES)}
        return tf1.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        self.seen.append(float(run_values.results))


def same(found, expected):
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-5)
    assert found[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        np.testing.assert_allclose(found[1][name], value, atol=1e-5, err_msg=name)


@pytest.mark.oldest
def test_losses_and_variables_are_the_same(tmp_path, programs):
    found = trained(tmp_path / "xla", True)
    same(found, trained(tmp_path / "loop", False))
    (ops,) = programs
    assert len(found[0]) == 20
    assert sum("matmul" in op.lower() for op in ops) >= 5


def with_dropout(features, labels, mode):
    """Draws as many random numbers as a batch has."""
    features = tf1.nn.dropout(dense(features, 16, "first"), rate=0.5)
    return classifier(features, labels, mode)


def test_random_numbers_are_as_ever(tmp_path, programs):
    found = trained(tmp_path / "xla", True, with_dropout)
    same(found, trained(tmp_path / "loop", False, with_dropout))
    (ops,) = programs
    assert any("random_uniform" in op for op in ops)  # which the program draws itself


def with_python(features, labels, mode):
    """Python between the layers, whose gradient is one's own."""

    @tf.custom_gradient
    def doubled(x):
        result = tf1.py_func(lambda x: 2 * x, [x], tf.float32)
        result.set_shape(x.shape)
        return result, lambda dy: 2 * dy

    return classifier(doubled(dense(features, 16, "first")), labels, mode)


def test_python_between_the_layers_makes_two_programs(tmp_path, programs):
    found = trained(tmp_path / "xla", True, with_python)
    same(found, trained(tmp_path / "loop", False, with_python))
    assert len(programs) == 2
    assert not any("PyFunc" in op for ops in programs for op in ops)


def with_checks(features, labels, mode):
    spec = classifier(features, labels, mode)
    step = tf1.train.get_global_step().read_value()
    with tf.control_dependencies([tf1.assert_less(step, tf.constant(13, tf.int64))]):
        return spec._replace(train_op=tf.group(spec.train_op))


def test_checks_are_made(tmp_path, programs):
    with pytest.raises(tf.errors.InvalidArgumentError, match="assert"):
        trained(tmp_path / "xla", True, with_checks)
    assert programs
    same(
        trained(tmp_path / "short", True, with_checks, steps=12),
        trained(tmp_path / "loop", False, with_checks, steps=12),
    )


def with_summaries(features, labels, mode):
    spec = classifier(features, labels, mode)
    for variable in tf1.trainable_variables():
        tf1.summary.histogram(variable.op.name, variable)
    tf1.summary.scalar("rate", tf1.train.get_global_step() * 2)
    return spec


def curve(folder):
    (path,) = Path(folder).glob("events.*")
    events = [e for e in tf1.train.summary_iterator(str(path)) if e.summary.value]
    return [(e.step, v.tag, v.simple_value) for e in events for v in e.summary.value]


def test_summaries_are_written_of_the_steps_and_values_that_they_were(tmp_path, programs):
    every = {"save_summary_steps": 5, "steps": 12}
    found = trained(tmp_path / "xla", True, with_summaries, **every)
    expected = trained(tmp_path / "loop", False, with_summaries, **every)
    same(found, expected)
    ours, others = curve(tmp_path / "xla"), curve(tmp_path / "loop")
    assert [row[:2] for row in ours] == [row[:2] for row in others]
    np.testing.assert_allclose([r[2] for r in ours], [r[2] for r in others], rtol=1e-5)
    assert len({step for step, *_ in ours}) == 3
    assert len(programs) == 1  # those of the first step serve the others


def test_a_step_that_finds_no_batch_changes_nothing(tmp_path):
    found = trained(tmp_path / "xla", True, input_fn=digits(7), steps=None)
    same(found, trained(tmp_path / "loop", False, input_fn=digits(7), steps=None))
    assert found[1]["global_step"] == 7


def test_a_block_ends_with_the_step_whose_loss_is_nan(model_dir):
    def input_fn():
        values = np.array([1.0] * 20 + [math.nan] + [1.0] * 20, np.float32)
        return tf.data.Dataset.from_tensor_slices(values).batch(1, drop_remainder=True)

    config = estimator.RunConfig(model_dir, save_summary_steps=None)
    model = estimator.Estimator(falling, config=config, params={}, options=COMPILED)
    with pytest.raises(tf1.train.NanLossDuringTrainingError):
        model.train(input_fn)


def test_hooks_see_each_step(model_dir):
    config = estimator.RunConfig(model_dir)
    model = estimator.Estimator(falling, config=config, params={}, options=COMPILED)
    model.train(one_by_one, hooks=[steps := Steps()], steps=4)
    assert steps.seen == [1, 2, 3, 4]


def test_what_xla_cannot_compile_is_named_with_its_line(model_dir):
    def model_fn(features, labels, mode, params):
        size = tf.cast(tf.reduce_sum(features), tf.int32)
        grown = tf.reduce_sum(tf.zeros([size]))  # not for XLA
        return falling(features + grown, labels, mode, params)

    model = estimator.Estimator(model_fn, model_dir, params={}, options=COMPILED)
    with pytest.raises(UnsupportedError, match=r"test_jit.py:\d+.*# not for XLA"):
        model.train(one_by_one, steps=5)


def test_batches_must_have_one_shape(model_dir):
    model = estimator.Estimator(falling, model_dir, params={}, options=COMPILED)
    with pytest.raises(UnsupportedError, match="drop_remainder=True"):
        model.train(lambda: tf.data.Dataset.from_tensors(tf.ones([])).repeat().batch(1), steps=5)


def test_it_is_for_one_device(emulated_cores, model_dir):
    emulated_cores(2)
    model = cores_estimator(model_dir, options=COMPILED)
    with pytest.raises(UnsupportedError, match="jit_compile is for training on one device"):
        model.train(ones, steps=1)


def test_what_is_no_bool_is_refused():
    with pytest.raises(ValueError, match="jit_compile must be True or False"):
        estimator.TrainingOptions(jit_compile="yes")


class TestParts:
    def cut(self, build, host=("PyFunc",)):
        with tf.Graph().as_default() as graph:
            output = build()
        recorded = RecordedGraph(graph)
        return recorded, segments.compiled(
            recorded, [output.name], (), lambda name: recorded[name].op in host
        )

    def test_what_depends_on_python_is_another_part(self):
        def build():
            before = tf1.get_variable("v", [2], use_resource=True) * 2.0
            beside = before + 1.0
            called = tf1.py_func(lambda x: x, [before], tf.float32)
            return called + beside

        recorded, (first, second) = self.cut(build)
        assert [recorded[op].op for op in first.ops] == ["ReadVariableOp", "Mul", "AddV2"]
        assert [recorded[op].op for op in second.ops] == ["AddV2"]
        assert set(second.takes) == {"PyFunc:0", "add:0"}
        assert set(first.gives) == {"mul:0", "add:0"}

    def test_what_touches_a_variable_keeps_its_order(self):
        def build():
            variable = tf1.get_variable("v", [], use_resource=True)
            called = tf1.py_func(lambda: np.float32(1), [], tf.float32)
            with tf.control_dependencies([variable.assign(called)]):
                return variable.read_value() + 1.0

        recorded, parts = self.cut(build, host=("PyFunc", "AssignVariableOp"))
        (part,) = parts
        assert recorded[part.ops[0]].op == "ReadVariableOp"

    def test_constants_are_part_of_what_uses_them(self):
        def build():
            ones = tf.ones([2]) + tf.constant([2.0])
            return tf1.py_func(lambda x: x, [ones], tf.float32) * ones

        _, (part,) = self.cut(build)
        assert part.takes == ("PyFunc:0",)


def test_programs_serve_a_later_training_on_its_own_state(tmp_path):
    """The first step also has summaries; what the later steps need is part of its programs."""
    trained = []
    for name, options in (("jit", COMPILED), ("loop", estimator.TrainingOptions())):
        config = estimator.RunConfig(str(tmp_path / name), tf_random_seed=1)
        model = estimator.Estimator(classifier, config=config, options=options)
        for steps in (1, 30):
            model.train(digits(), steps=steps)
        trained.append(model.get_variable_value("hidden/kernel"))
    np.testing.assert_allclose(*trained, rtol=1e-4, atol=1e-5)


def with_table(features, labels, mode):
    """Looks up as many ids as there are features, one of them beyond the table in the end."""
    step = tf.cast(tf1.train.get_global_step(), tf.int32)
    ids = tf.range(8) + tf1.maximum(step - 2, 0)
    table = tf1.get_variable("table", [8, 8])
    return classifier(features @ tf1.nn.embedding_lookup(table, ids), labels, mode)


def test_id_beyond_its_table_is_told_if_asked_for(tmp_path):
    options = estimator.TrainingOptions(jit_compile=True, check_compiled=True)
    with pytest.raises(tf.errors.InvalidArgumentError) as failed:
        trained(tmp_path / "checked", options, with_table)
    said = failed.value.message
    assert "an id is beyond the table" in said
    assert "test_jit.py:" in said
    assert "embedding_lookup(table, ids)" in said
    losses, _ = trained(tmp_path / "unchecked", True, with_table)
    assert len(losses) == 20


def test_environment_asks_for_it(monkeypatch):
    assert not COMPILED.checks_compiled
    monkeypatch.setenv("E2S_CHECK_COMPILED", "1")
    assert COMPILED.checks_compiled


def test_what_is_not_asked_for_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "swallowed", None)
    trained(tmp_path, True, steps=2)


def pixels(features, labels, mode):
    """A loss of four million numbers, as a segmentation's is of its pixels."""
    weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
    loss = tf.reduce_mean(features * weight)
    tf1.losses.add_loss(loss)
    train_op = tf1.train.GradientDescentOptimizer(0.5).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def many_tenths():
    return tf.data.Dataset.from_tensors(tf.fill([2**22], 0.1)).repeat()


def test_a_long_mean_keeps_its_digits(tmp_path):
    losses, variables = trained(tmp_path, True, pixels, many_tenths, steps=3)
    # The weight loses 0.05 a step: 0.1, 0.095, 0.09.
    np.testing.assert_allclose(losses, [0.1, 0.095, 0.09], rtol=1e-6)
    np.testing.assert_allclose(variables["weight"], 0.85, rtol=1e-6)


def test_only_long_float32_sums_are_taken_in_double():
    with tf.Graph().as_default() as graph:
        many = tf1.placeholder(tf.float32, [2, xla_kernels.LONG + 1])
        tf.reduce_sum(many, name="all")
        tf.reduce_mean(many, 1, name="rows")
        tf.reduce_sum(many, 0, name="columns")
        tf.reduce_sum(many[0, 1:], name="just_not_long")
        tf.reduce_sum(tf.cast(many, tf.float64), name="double")
        tf.reduce_sum(tf1.placeholder(tf.float32, [None]), name="unknown")
        assert xla_kernels.long_sums(RecordedGraph(graph)) == {"all", "rows"}
