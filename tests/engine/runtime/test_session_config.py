"""Each field of a ConfigProto is applied, or named in a warning."""

from __future__ import annotations

import logging
import subprocess

import pytest
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.runtime import session_config
from tests import fresh
from tests.engine.runtime.programs import (
    cores_estimator,
    falling,
    host_estimator,
    numbers,
    ones,
)

tf1 = tf.compat.v1
ON = tf1.OptimizerOptions.ON_1


@pytest.fixture(autouse=True)
def _warned_of_nothing_yet():
    session_config._warn_of_fields.cache_clear()
    session_config._warn_of_start.cache_clear()


def xla():
    config = tf1.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = ON
    return config


def seeing(seen):
    """model_fn that notes what the runtime's settings are while its steps run."""

    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)

        class Look(tf1.train.SessionRunHook):
            def after_run(self, run_context, run_values):
                seen.append(
                    (tf.config.optimizer.get_jit(), tf.debugging.get_log_device_placement())
                )

        look = [Look()]
        return spec._replace(training_hooks=look, evaluation_hooks=look, prediction_hooks=look)

    return model_fn


@pytest.mark.parametrize("call", ["train", "evaluate", "predict"])
def test_xla_and_placement_logs_are_on_during_the_call_and_then_as_before(model_dir, call):
    seen = []
    config = xla()
    config.log_device_placement = True
    model = host_estimator(model_dir, seeing(seen), session_config=config)
    if call == "predict":
        for _ in model.predict(numbers(1)):
            assert not tf.config.optimizer.get_jit()  # the consumer is outside
    else:
        getattr(model, call)(numbers(1))
    assert seen == [("autoclustering", True)]
    assert not tf.config.optimizer.get_jit()
    assert not tf.debugging.get_log_device_placement()


def rewrites():
    """How Grappler rewrites what this thread calls now."""
    options = _tf_private._context.context().function_call_options
    config = tf1.ConfigProto.FromString(options.config_proto_serialized)
    return config.graph_options.rewrite_options


def test_placement_is_as_soft_after_the_call_as_before(model_dir):
    """TensorFlow makes it hard when its log of placements goes off."""
    config = tf1.ConfigProto(log_device_placement=True)
    host_estimator(model_dir, session_config=config).train(numbers(1))
    with tf.device("/device:TPU:0"):
        assert tf.zeros([]).device.endswith("CPU:0")


def test_grappler_rewrites_as_the_config_says_once_a_session_has_started(model_dir):
    seen = {}

    def model_fn(features, labels, mode, params):
        def init_fn(scaffold, session):
            seen["start"] = rewrites()

        class Look(tf1.train.SessionRunHook):
            def after_run(self, run_context, run_values):
                seen["step"] = rewrites()

        spec = falling(features, labels, mode, params)
        scaffold = tf1.train.Scaffold(init_fn=init_fn)
        return spec._replace(training_hooks=[Look()], scaffold=scaffold)

    config = tf1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.constant_folding = options.OFF
    host_estimator(model_dir, model_fn, session_config=config).train(numbers(1))
    assert seen["step"].constant_folding == options.OFF
    assert seen["start"].disable_meta_optimizer
    assert not seen["step"].disable_meta_optimizer
    assert rewrites().constant_folding == options.DEFAULT


@pytest.fixture
def rewrites_of_blocks(monkeypatch):
    """How each block of steps that runs is rewritten."""
    seen = []
    run = Runs.run

    def noted(runs, step, *args):
        if step:
            seen.append(rewrites())
        return run(runs, step, *args)

    monkeypatch.setattr(Runs, "run", noted)
    return seen


def test_the_step_of_emulated_cores_is_rewritten_only_a_little(
    emulated_cores, model_dir, rewrites_of_blocks
):
    emulated_cores(2)
    cores_estimator(model_dir).train(ones, steps=8)
    assert [o.layout_optimizer == o.OFF for o in rewrites_of_blocks] == [True, True]
    assert rewrites_of_blocks[0].remapping == rewrites_of_blocks[0].DEFAULT  # changes what it gives
    assert rewrites().layout_optimizer == rewrites().DEFAULT


def test_the_step_of_one_device_is_rewritten_as_ever(model_dir, rewrites_of_blocks):
    host_estimator(model_dir).train(numbers(1), steps=1)
    (used,) = rewrites_of_blocks
    assert used.layout_optimizer == used.DEFAULT


def test_cores_are_rewritten_as_the_config_says_where_it_does(
    emulated_cores, model_dir, rewrites_of_blocks
):
    config = tf1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.constant_folding = options.OFF
    emulated_cores(2)
    cores_estimator(model_dir, session_config=config).train(ones, steps=4)
    (used,) = rewrites_of_blocks
    assert used.constant_folding == options.OFF
    assert used.layout_optimizer == options.DEFAULT


def test_settings_are_put_back_after_an_error(model_dir):
    def broken(features, params):
        raise KeyError("the user's")

    with pytest.raises(KeyError):
        host_estimator(model_dir, broken, session_config=xla()).train(numbers(1))
    assert not tf.config.optimizer.get_jit()


def test_a_generator_of_predictions_that_is_closed_early_puts_them_back(model_dir):
    predictions = host_estimator(model_dir, session_config=xla()).predict(numbers(5))
    next(predictions)
    predictions.close()
    assert not tf.config.optimizer.get_jit()


def test_fields_without_a_meaning_are_named_once(model_dir, log):
    config = tf1.ConfigProto(operation_timeout_in_ms=1000, allow_soft_placement=True)
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    model = host_estimator(model_dir, session_config=config)
    model.train(numbers(1))
    model.evaluate(numbers(1))
    (warning,) = (line for line in log(logging.WARNING) if "have no effect" in line)
    assert "gpu_options.per_process_gpu_memory_fraction, operation_timeout_in_ms" in warning
    assert "allow_soft_placement" not in warning


def test_a_default_config_says_nothing(model_dir, log):
    host_estimator(model_dir).train(numbers(1))
    assert not any("session_config" in line for line in log(logging.WARNING))


def test_threads_that_come_too_late_are_said_to(model_dir, log):
    config = tf1.ConfigProto(intra_op_parallelism_threads=3)
    host_estimator(model_dir, session_config=config).train(numbers(1))
    assert "session_config.intra_op_parallelism_threads = 3 came too late" in log.text


THREADS = """
import sys
import tensorflow as tf
from estimator2strategy import estimator
from tests.engine.runtime.programs import host_estimator, numbers

config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
host_estimator(sys.argv[1], session_config=config).train(numbers(2))
print(
    tf.config.threading.get_intra_op_parallelism_threads(),
    tf.config.threading.get_inter_op_parallelism_threads(),
)
"""


def test_threads_are_set_before_tensorflow_starts(model_dir):
    result = subprocess.run(
        [fresh.python(), "-c", THREADS, model_dir], capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == ["1", "2"], result.stderr
    assert "too late" not in result.stderr


def test_an_estimators_config_has_the_legacy_default(model_dir):
    config = host_estimator(model_dir).config.session_config
    assert config.allow_soft_placement
    rewrite_options = config.graph_options.rewrite_options
    assert rewrite_options.meta_optimizer_iterations == rewrite_options.ONE
