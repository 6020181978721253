"""A line that says where the time of a training went, and profiles for TensorBoard."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.runtime.profiling import Spent, verdict
from tests.engine.runtime.programs import (
    cores_estimator,
    falling,
    host_estimator,
    numbers,
    ones,
)

tf1 = tf.compat.v1


@pytest.mark.parametrize(
    ("spent", "said"),
    [
        (
            Spent(10.0, building=1.0, steps=8.0, waiting=1.0),
            "7 steps in 10.0 s, compute-bound: computing 70%, input 10%, host 10%, "
            "building programs 10%",
        ),
        (
            Spent(10.0, building=1.0, steps=8.0, waiting=6.0),
            "7 steps in 10.0 s, input-bound: computing 20%, input 60%, host 10%, "
            "building programs 10%",
        ),
        (
            Spent(10.0, building=1.0, steps=3.0),
            "7 steps in 10.0 s, host-bound: steps 30%, host 60%, building programs 10% "
            "(TrainingOptions(profile_dir=...) says more)",
        ),
        (
            Spent(2.0, building=1.5, steps=0.5, waiting=0.0),
            "7 steps in 2.0 s, bound by its start: computing 25%, input 0%, host 0%, "
            "building programs 75%",
        ),
        (
            Spent(10.0, building=1.0, steps=2.0, evaluating=6.0),
            "7 steps in 10.0 s, bound by its evaluations: steps 20%, host 10%, "
            "building programs 10%, evaluation 60% (TrainingOptions(profile_dir=...) says more)",
        ),
    ],
    ids=["compute", "input", "host", "start", "evaluation"],
)
def test_the_verdict_is_what_took_longest(spent, said):
    assert verdict(spent, 7) == said


def share(text, part):
    return int(re.search(rf"{part} (\d+)%", text)[1])


@pytest.mark.parametrize("end", ["steps", "input"])
def test_a_training_says_at_its_end_where_the_time_went(model_dir, log, end):
    host_estimator(model_dir).train(numbers(30), steps=20 if end == "steps" else None)
    assert re.search(rf"{20 if end == 'steps' else 30} steps in \d+\.\d s, \S+", log.text)
    assert share(log.text, "building programs") > 0


def test_evaluations_between_steps_are_told_by_themselves(model_dir, log):
    model = host_estimator(model_dir, save_checkpoints_steps=10)
    estimator.train_and_evaluate(
        model,
        estimator.TrainSpec(numbers(30), max_steps=30),
        estimator.EvalSpec(numbers(3), throttle_secs=0),
    )
    assert share(log.text, "evaluation") > 0


def slow_input():
    def generator():
        for _ in range(12):
            time.sleep(0.1)
            yield [1.0]

    spec = tf.TensorSpec([1], tf.float32)
    return tf.data.Dataset.from_generator(generator, output_signature=spec)


@pytest.mark.parametrize("steps_per_block", [6, 12])
def test_time_that_steps_wait_for_input_is_told(tmp_path, log, steps_per_block):
    """Batches that are taken while a step runs are waited for when it has run."""
    config = estimator.RunConfig(
        str(tmp_path / "model"), log_step_count_steps=steps_per_block, save_summary_steps=0
    )
    options = estimator.TrainingOptions(profile_dir=tmp_path / "profile")
    model = estimator.Estimator(falling, config=config, params={}, options=options)
    model.train(slow_input)
    assert share(log.text, "input") > 5 * share(log.text, "computing")


def test_a_profile_has_the_steps_marked_and_tells_how_long_input_took(tmp_path, log):
    config = estimator.RunConfig(str(tmp_path / "model"), log_step_count_steps=1)
    options = estimator.TrainingOptions(profile_dir=tmp_path / "profile")
    model = estimator.Estimator(falling, config=config, params={}, options=options)
    model.train(slow_input)
    assert share(log.text, "input") > share(log.text, "computing")
    assert "train" in events_in(tmp_path / "profile")
    assert model.get_variable_value("weight") == -12


def events_in(folder):
    """The names of what happened while a profile was made."""
    (path,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
    space = _tf_private.XSpace.FromString(path.read_bytes())
    return {e.name for plane in space.planes for e in plane.event_metadata.values()}


def test_a_profile_is_of_what_runs_without_one(tmp_path):
    """Measuring keeps no ops from being fused."""

    def layer(features, mode):
        del mode
        kernel = tf1.get_variable("kernel", [1, 1])
        product = tf.matmul(features, kernel)
        output = tf.nn.bias_add(product, tf1.get_variable("bias", [1]), name="with_bias")
        loss = tf.reduce_sum(output)
        step = tf1.train.get_global_step()
        train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return estimator.EstimatorSpec("train", loss=loss, train_op=train_op)

    config = estimator.RunConfig(str(tmp_path / "model"))
    options = estimator.TrainingOptions(profile_dir=tmp_path / "profile")
    model = estimator.Estimator(layer, config=config, options=options)
    model.train(lambda: tf.data.Dataset.from_tensors([[1.0]]).repeat(), steps=20)
    (type_of_op,) = {
        name.rpartition(":")[2] for name in events_in(tmp_path / "profile") if "with_bias:" in name
    }
    assert type_of_op.endswith("FusedMatMul")


@pytest.mark.evidence("profile", "cpu")
def test_the_environment_names_the_folder(emulated_cores, tmp_path, monkeypatch):
    """As `e2s run --profile-dir` does; on cores, too."""
    monkeypatch.setenv("E2S_PROFILE_DIR", str(tmp_path / "profile"))
    emulated_cores(2)
    model = cores_estimator(str(tmp_path / "model"), iterations=2)
    model.train(ones, steps=8)
    assert list(Path(tmp_path, "profile").glob("plugins/profile/*/*.xplane.pb"))
