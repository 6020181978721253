"""An Estimator under JAX, around its steps, and its refusals."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("jax", minversion="0.10")

from estimator2strategy import errors, estimator
from estimator2strategy.engine.replay.engines import on_jax
from estimator2strategy.engine.runtime import jax_devices as jax_runtime
from tests.hooks import LossRecorder

tf1 = tf.compat.v1


def input_fn():
    x = np.arange(24, dtype=np.float32).reshape(8, 3) / 24
    return tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(2)


def model_fn(features, labels, mode):
    w = tf1.get_variable("w", [3, 1], initializer=tf1.zeros_initializer())
    y = features @ w
    if mode == "infer":
        return estimator.EstimatorSpec(mode, predictions={"y": y, "x": features})
    loss = tf.reduce_mean(tf.square(y - labels))
    tf1.summary.scalar("mean", tf.reduce_mean(y))
    train_op = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def trained(folder, steps=None, fn=model_fn, hooks=(), **config):
    config = estimator.RunConfig(model_dir=str(folder), tf_random_seed=1, **config)
    return estimator.Estimator(fn, config=config).train(input_fn, steps=steps, hooks=hooks)


@pytest.mark.evidence("hooks", "jax")
def test_hooks_see_each_step_and_the_end_of_the_input(tmp_path, jax_devices):
    expected, found = LossRecorder(), LossRecorder()
    trained(tmp_path / "tensorflow", hooks=[expected])
    jax_devices(1)
    trained(tmp_path / "jax", hooks=[found])
    assert len(found.losses) == 4
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-5)


def test_checkpoints_come_at_their_steps_and_training_goes_on_from_them(tmp_path, jax_devices):
    jax_devices(1)
    model = trained(tmp_path, save_checkpoints_steps=2, keep_checkpoint_max=None)
    steps = sorted(int(f.suffixes[-2][1:].split("-")[1]) for f in tmp_path.glob("*.index"))
    assert steps == [0, 2, 4]
    before = model.get_variable_value("w")
    trained(tmp_path, steps=1)
    assert model.get_variable_value("global_step") == 5
    assert not np.array_equal(model.get_variable_value("w"), before)


@pytest.mark.evidence("checkpoints", "jax")
def test_a_checkpoint_of_jax_is_continued_by_tensorflow(tmp_path, jax_devices, monkeypatch):
    trained(tmp_path / "alone", steps=2)
    alone = trained(tmp_path / "alone", steps=2)
    jax_devices(1)
    trained(tmp_path / "both", steps=2)
    monkeypatch.delenv("E2S_RUNTIME")
    both = trained(tmp_path / "both", steps=2)
    for name in alone.get_variable_names():
        expected = alone.get_variable_value(name)
        np.testing.assert_allclose(both.get_variable_value(name), expected, rtol=1e-5)


@pytest.mark.evidence("prediction", "jax")
def test_predictions_of_a_short_last_batch_come_with_what_the_host_kept(tmp_path, jax_devices):
    jax_devices(1)
    model = trained(tmp_path, steps=1)
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    given = lambda: tf.data.Dataset.from_tensor_slices(x).batch(2)  # noqa: E731
    found = list(model.predict(given))
    np.testing.assert_array_equal([row["x"] for row in found], x)
    np.testing.assert_allclose([row["y"] for row in found], x @ model.get_variable_value("w"), 1e-5)


@pytest.mark.evidence("nan", "jax")
def test_the_step_since_which_the_loss_is_nan_is_told(tmp_path, jax_devices, log):
    def diverging(features, labels, mode):
        w = tf1.get_variable("w", [], initializer=tf1.ones_initializer())
        step = tf1.train.get_global_step()
        loss = w * tf.reduce_mean(features) + tf.where(step >= 2, np.nan, 0.0)
        train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    jax_devices(1)
    with pytest.raises(tf1.train.NanLossDuringTrainingError):
        trained(tmp_path, fn=diverging)
    assert "The loss is NaN since step 3." in log.text


@pytest.mark.evidence("nan", "jax")
def test_a_nan_of_an_early_launch_of_a_long_block_keeps_its_step(tmp_path, jax_devices, log):
    def broken_at_5(features, labels, mode, params):
        del labels, params
        w = tf1.get_variable("w", [], initializer=tf1.ones_initializer())
        step = tf1.train.get_global_step()
        loss = w * tf.reduce_mean(features) + tf.where(step >= 4, np.nan, 0.0)
        optimizer = tf1.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, step)
        return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def endless(params):
        return tf.data.Dataset.from_tensors((tf.ones([2, 3]), tf.ones([2]))).repeat()

    jax_devices(1)
    config = estimator.tpu.RunConfig(
        model_dir=str(tmp_path), tpu_config=estimator.tpu.TPUConfig(iterations_per_loop=200)
    )
    model = estimator.tpu.TPUEstimator(
        broken_at_5, config=config, use_tpu=True, train_batch_size=2, params={}
    )
    with pytest.raises(tf1.train.NanLossDuringTrainingError):
        model.train(endless, max_steps=200)
    assert "The loss is NaN since step 5." in log.text


@pytest.mark.evidence("refusals", "jax")
def test_what_the_host_must_do_in_the_middle_of_a_step_is_refused(tmp_path, jax_devices):
    jax_devices(1)
    with pytest.raises(errors.UnsupportedError, match=r"middle of it:\n.*test_jax_runtime.py"):
        trained(tmp_path, steps=1, fn=through_python)


def test_a_seed_that_xla_forgets_is_told_with_its_line(tmp_path, jax_devices, log):
    def rare():
        return tf.raw_ops.ParameterizedTruncatedNormal(
            shape=[2, 1], means=0.0, stdevs=1.0, minvals=-1.0, maxvals=1.0, seed=3
        )

    def noisy(features, labels, mode):
        w = tf1.get_variable("w", [3, 1], initializer=tf1.zeros_initializer())
        step = tf1.train.get_global_step()
        noise = tf.cond(step < 9, rare, lambda: tf1.random_uniform([2, 1], seed=3))
        stateless = tf.random.stateless_uniform([2, 1], [7, 8])
        loss = tf.reduce_mean(tf.square(features @ w - labels + noise + stateless))
        train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    jax_devices(1)
    for _ in range(2):
        trained(tmp_path, steps=1, fn=noisy)
    told = [line for line in log.text.splitlines() if "has no effect" in line]
    assert len(told) == 1
    assert "ParameterizedTruncatedNormal" in told[0]
    assert "test_jax_runtime.py:" in told[0]


@pytest.fixture
def launches(monkeypatch, jax_devices):
    """The steps of each launch under `auto`, of a process whose JAX has an accelerator."""
    jax_devices(1)
    monkeypatch.setenv("E2S_RUNTIME", "auto")
    monkeypatch.setattr(jax_runtime, "has_accelerator", lambda: True)
    seen: list[int] = []
    launch = on_jax.OnJax._launch
    monkeypatch.setattr(
        on_jax.OnJax, "_launch", lambda self, t, p: seen.append(t.steps) or launch(self, t, p)
    )
    return seen


def test_auto_is_jax_where_it_has_an_accelerator(tmp_path, launches):
    trained(tmp_path, steps=2)
    assert sum(launches) == 2


def test_auto_is_tensorflow_on_a_cpu(tmp_path, launches, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("E2S_RUNTIME", "auto")
    assert not jax_runtime.has_accelerator()
    trained(tmp_path, steps=2)
    assert launches == []


def through_python(features, labels, mode):
    """What a device needs depends on Python code that the host has to run in between."""
    w = tf1.get_variable("w", [3, 1], initializer=tf1.zeros_initializer())
    y = tf.reshape(tf1.py_func(lambda value: value, [features @ w], tf.float32), [-1, 1]) * w[0]
    if mode == "infer":
        return estimator.EstimatorSpec(mode, predictions=y)
    loss = tf.reduce_mean(tf.square(y - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def test_auto_is_tensorflow_for_a_program_that_jax_cannot_run(tmp_path, launches, log):
    model = trained(tmp_path / "trains", steps=2, fn=through_python)
    assert model.get_variable_value("global_step") == 2
    assert log.text.count("TensorFlow runs the steps, and not JAX. Under the runtime of JAX") == 1
    assert "test_jax_runtime.py" in log.text
    again = estimator.Estimator(through_python, str(tmp_path / "trains"))
    assert len(list(again.predict(input_fn))) == 8
    assert launches == []


def test_auto_leaves_a_strategy_to_tensorflow(tmp_path, launches):
    strategy = tf.distribute.OneDeviceStrategy("/CPU:0")
    trained(tmp_path, steps=1, train_distribute=strategy)
    assert launches == []


def test_a_strategy_of_tensorflow_is_refused(tmp_path, jax_devices):
    jax_devices(1)
    strategy = tf.distribute.OneDeviceStrategy("/CPU:0")
    with pytest.raises(errors.UnsupportedError, match="leave out train_distribute"):
        trained(tmp_path, steps=1, train_distribute=strategy)


def test_without_jax_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("E2S_RUNTIME", "jax")
    monkeypatch.setitem(sys.modules, "jax", None)
    jax_runtime._devices.cache_clear()
    with pytest.raises(errors.DeviceError, match=r"pip install 'estimator2strategy\[jax\]'"):
        trained(tmp_path, steps=1)


@pytest.mark.parametrize(("variable", "value"), [("E2S_RUNTIME", "jxa"), ("E2S_PRECISION", "low")])
def test_a_wrong_name_in_the_environment_is_told(
    tmp_path, monkeypatch, jax_devices, variable, value
):
    jax_devices(1)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=f"{variable} must be one of"):
        trained(tmp_path, steps=1)


@pytest.mark.evidence("host_call", "jax")
@pytest.mark.parametrize("devices", [1, 2])
def test_strings_in_a_host_call_and_a_metric_fn_stay_on_the_host(tmp_path, jax_devices, devices):
    written = tmp_path / "written"
    written.mkdir()

    def write(loss, step):
        text = tf1.as_string(tf.reduce_mean(loss))
        name = tf.strings.join([str(written), "/", tf1.as_string(tf.reduce_max(step))])
        return tf1.cond(tf.size(loss) > 0, lambda: tf1.write_file(name, text), lambda: tf.no_op())

    def metrics(values):
        lengths = tf.strings.length(tf1.as_string(values, precision=1))
        return {"length": tf1.metrics.mean(lengths)}

    def on_cores(features, labels, mode, params):
        del params
        w = tf1.get_variable("w", [3, 1], initializer=tf1.zeros_initializer())
        step = tf1.train.get_global_step()
        loss = tf.reduce_mean(tf.square(features @ w - labels))
        if mode == "eval":
            of_host = (metrics, [labels])
            return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=of_host)
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, step)
        of_host = (write, [tf.reshape(loss, [1]), tf.reshape(step, [1])])
        return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=of_host)

    def batches(params):
        x = np.arange(24, dtype=np.float32).reshape(8, 3) / 24
        data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True)))
        return data.repeat().batch(params["batch_size"], drop_remainder=True)

    jax_devices(devices)
    of_tpu = estimator.tpu.TPUConfig(iterations_per_loop=2)
    config = estimator.tpu.RunConfig(model_dir=str(tmp_path / "m"), tpu_config=of_tpu)
    sizes = {"train_batch_size": 4, "eval_batch_size": 4}
    model = estimator.tpu.TPUEstimator(on_cores, config=config, use_tpu=True, **sizes)
    model.train(batches, steps=4)
    assert len(list(written.iterdir())) == 4
    assert model.evaluate(batches, steps=2)["length"] == 3.0
