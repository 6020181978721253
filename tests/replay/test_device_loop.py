"""A block of steps as one XLA program is the training that it was, or an early refusal."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.replay.device_loop import DeviceLoop
from estimator2strategy.runtime import lookahead, trial
from tests.runtime.programs import cores_estimator, falling, host_estimator, ones

tf1 = tf.compat.v1


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


def trained(model_dir, execution, input_fn, steps=None):
    """The variables after a training, by name."""
    run_config = estimator.RunConfig(str(model_dir), tf_random_seed=1, save_summary_steps=None)
    model = estimator.Estimator(classifier, config=run_config, execution=execution)
    model.train(input_fn, steps=steps)
    return {name: model.get_variable_value(name) for name in model.get_variable_names()}


@pytest.fixture
def blocks(monkeypatch):
    """How many steps each block of a device loop ran, however slow the machine is."""
    monkeypatch.setattr(lookahead, "_LONGEST_BLOCK", 1e9)
    seen = []
    run = DeviceLoop.run

    def noted(self, steps):
        result = run(self, steps)
        seen.append(result[0])
        return result

    monkeypatch.setattr(DeviceLoop, "run", noted)
    return seen


@pytest.mark.oldest
@pytest.mark.parametrize(
    ("batches", "steps"), [(None, 150), (77, None)], ids=["as many as asked for", "end of input"]
)
def test_it_trains_as_the_loop_does(tmp_path, blocks, batches, steps):
    expected = trained(tmp_path / "loop", "loop", digits(batches), steps=steps)
    assert blocks == []
    found = trained(tmp_path / "xla", "device_loop", digits(batches), steps=steps)
    assert sum(blocks) == found["global_step"] == (steps or batches)
    assert max(blocks) > 60
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_nothing_is_drawn_ahead(model_dir):
    """Steps that write a summary are the executor's, and take the batch that is next."""
    seen = []

    class Losses(tf1.train.SessionRunHook):
        def before_run(self, run_context):
            return tf1.train.SessionRunArgs(loss.pop())

        def after_run(self, run_context, run_values):
            seen.append(float(run_values.results))

    loss = []

    def model_fn(features, mode):
        spec = falling(features, None, mode, {})
        loss.extend([spec.loss] * 20)
        return spec

    def input_fn():
        data = tf.data.Dataset.range(1, 20, output_type=tf.float32)
        return data.batch(1, drop_remainder=True)

    config = estimator.RunConfig(model_dir=model_dir, save_summary_steps=3)
    model = estimator.Estimator(model_fn, config=config, execution="device_loop")
    model.train(input_fn, hooks=[Losses()], steps=9)
    assert seen == list(range(1, 10))


def test_a_block_ends_with_the_step_whose_loss_is_nan(model_dir, blocks):
    def input_fn():
        values = np.array([1.0] * 20 + [math.nan] + [1.0] * 20, np.float32)
        return tf.data.Dataset.from_tensor_slices(values).batch(1, drop_remainder=True)

    model = host_estimator(model_dir, save_summary_steps=None, execution="device_loop")
    with pytest.raises(tf1.train.NanLossDuringTrainingError):
        model.train(input_fn)
    assert sum(blocks) == 21


def doubled_in_python(features, labels, mode, params):
    features = tf1.py_func(lambda x: 2 * x, [features], tf.float32)  # not for XLA
    features.set_shape([1])
    return falling(features, labels, mode, params)


def test_what_xla_cannot_compile_is_named_with_its_line(model_dir):
    model = host_estimator(model_dir, doubled_in_python, execution="device_loop")
    with pytest.raises(UnsupportedError, match=r"test_device_loop.py:\d+.*# not for XLA"):
        model.train(one_by_one, steps=5)


def one_by_one():
    return tf.data.Dataset.from_tensors(tf.ones([])).repeat().batch(1, drop_remainder=True)


def test_batches_must_have_one_shape(model_dir):
    model = host_estimator(model_dir, execution="device_loop")
    with pytest.raises(UnsupportedError, match="drop_remainder=True"):
        model.train(lambda: tf.data.Dataset.from_tensors(tf.ones([])).repeat().batch(1), steps=5)


def test_it_is_for_one_device(emulated_cores, model_dir):
    emulated_cores(2)
    model = cores_estimator(model_dir, execution="device_loop")
    with pytest.raises(UnsupportedError, match="on one device"):
        model.train(ones, steps=1)


def test_an_execution_that_there_is_not_is_refused(model_dir):
    with pytest.raises(ValueError, match="execution must be 'loop', 'device_loop' or 'auto'"):
        host_estimator(model_dir, execution="fast")


class Eager(trial.DeviceLoopTrial):
    """Tries a device loop at once."""

    _PAYS_AFTER = _SETTLED_AFTER = 0


@pytest.mark.parametrize("seconds", [0.5, 1.0, 2.0, 5.0], ids=lambda s: f"{s} times as long")
def test_a_device_loop_is_kept_where_it_is_faster(seconds):
    chosen = Eager("auto")
    sizes = []
    for _ in range(10):
        on = chosen.choice(math.inf)
        sizes.append((min(100, chosen.most()), on))
        chosen.ran(sizes[-1][0], sizes[-1][0] * (seconds if on else 1.0))
    tried = [(100, ""), (100, ""), (8, "may"), (8, "may")]
    in_turns = [(100, "may"), (100, ""), (100, "may"), (100, ""), (100, "may")]
    measured = in_turns if seconds < 4 else []
    last = (100, "may" if seconds <= 1 else "")
    assert sizes == (tried + measured + 10 * [last])[:10]


def decided(speeds):
    """What is chosen; `speeds(way, block)` are the seconds of a step in a block."""
    chosen = Eager("auto")
    for block in range(12):
        on = chosen.choice(math.inf)
        chosen.ran(1, speeds(on, block))
    return chosen.choice(math.inf)


def test_one_slow_block_does_not_decide():
    assert decided(lambda on, block: 3.0 if block == 6 else 0.5 if on else 1.0) == "may"


def test_a_program_that_becomes_faster_as_it_goes_on_is_not_given_up_for_its_start():
    assert decided(lambda on, block: (1.2 if on else 1.0) / (block + 1)) == ""


def test_a_device_loop_is_not_tried_before_the_input_has_settled():
    chosen = trial.DeviceLoopTrial("auto")
    wishes = []
    for _ in range(6):
        wishes.append(chosen.choice(left=1e9))
        chosen.ran(1, 0.5)
    assert wishes == [""] * 5 + ["may"]


def test_a_device_loop_is_tried_where_it_pays():
    chosen = trial.DeviceLoopTrial("auto")
    chosen.ran(1, 2.0)  # builds the program
    chosen.ran(100, 1.0)
    assert chosen.choice(left=1900) == ""
    assert chosen.choice(left=2100) == "may"


def test_auto_trains_as_the_loop_does(tmp_path, blocks, monkeypatch):
    monkeypatch.setattr("estimator2strategy.runtime.trial.DeviceLoopTrial", Eager)
    expected = trained(tmp_path / "loop", "loop", digits(), steps=500)
    found = trained(tmp_path / "auto", "auto", digits(), steps=500)
    assert len(blocks) >= 2
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_auto_logs_the_steps_that_the_loop_logs(model_dir, monkeypatch):
    monkeypatch.setattr("estimator2strategy.runtime.trial.DeviceLoopTrial", Eager)
    logged = []

    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        step = tf1.train.get_global_step()
        hook = tf1.train.LoggingTensorHook(
            {"step": step}, every_n_iter=50, formatter=lambda t: logged.append(int(t["step"])) or ""
        )
        return spec._replace(training_hooks=[hook])

    host_estimator(model_dir, model_fn, execution="auto").train(one_by_one, steps=301)
    assert logged == [0, 50, 100, 150, 200, 250, 300]


def noisy(features, labels, mode, params):
    return falling(features + tf1.random_normal([1], seed=3), labels, mode, params)


def checked(features, labels, mode, params):
    return falling(tf.debugging.check_numerics(features, "features"), labels, mode, params)


@pytest.mark.parametrize("model_fn", [noisy, doubled_in_python, checked])
def test_auto_leaves_the_loop_what_it_alone_can_do(tmp_path, blocks, monkeypatch, model_fn):
    """XLA's random numbers are others, so the numbers would depend on what was measured. And it
    checks nothing."""
    monkeypatch.setattr("estimator2strategy.runtime.trial.DeviceLoopTrial", Eager)
    model = host_estimator(str(tmp_path), model_fn, execution="auto")
    model.train(one_by_one, steps=300)
    assert model.get_variable_value("global_step") == 300
    assert blocks == []
