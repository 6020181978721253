"""host_call: which steps it sees, what it may use, and where it may write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.errors import RecordingError
from tests.engine.runtime.programs import ones

tf1 = tf.compat.v1
tpu = estimator.tpu


@pytest.fixture(autouse=True)
def _two_cores(emulated_cores):
    emulated_cores(2)


def with_host_call(model_dir, host_call, every=1, iterations=5, use_tpu=True):
    """A TPUEstimator whose weight rises by 1 a step; `host_call(step, weight)` makes the pair."""

    def model_fn(features, labels, mode, params):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(features) * -weight
        optimizer = tf1.train.GradientDescentOptimizer(1.0)
        if params["use_tpu"]:
            optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
        step = tf1.train.get_global_step()
        train_op = optimizer.minimize(loss, global_step=step)
        pair = host_call(tf.reshape(step, [1]), features)
        if mode == estimator.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"x": features}, host_call=pair)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=pair)

    tpu_config = tpu.TPUConfig(
        iterations_per_loop=iterations, experimental_host_call_every_n_steps=every
    )
    config = tpu.RunConfig(model_dir=model_dir, tpu_config=tpu_config)
    sizes = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}
    return tpu.TPUEstimator(model_fn, config=config, use_tpu=use_tpu, **sizes)


class Seen:
    """A host_call that notes what it gets, and returns an op or a tensor."""

    def __init__(self):
        self.steps = []
        self.sizes = set()

    def __call__(self, step, features):
        def note(steps, batch):
            self.steps.append(int(steps[0]))
            self.sizes.add((len(steps), len(batch)))
            return np.int64(0)

        return tf1.py_func(note, [step, features], tf.int64)


def in_a_list(function):
    return lambda step, features: (function, [step, features])


def in_a_dict(function):
    return lambda step, features: (function, {"features": features, "step": step})


@pytest.mark.parametrize("made", [in_a_list, in_a_dict])
@pytest.mark.parametrize(
    ("every", "steps"),
    [
        (1, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (2, [0, 2, 4, 5, 7, 9, 10]),  # counted anew in each execution of 5 steps
        (7, [0, 5, 10]),
    ],
)
@pytest.mark.evidence("host_call", "cpu")
def test_steps_that_it_sees_are_those_before_the_update(model_dir, made, every, steps):
    seen = Seen()
    with_host_call(model_dir, made(seen), every).train(ones, steps=11)
    assert seen.steps == steps
    assert seen.sizes == {(2, 4)}  # a step of each core, and the global batch


def test_on_the_host_it_sees_every_step(model_dir):
    seen = Seen()
    with_host_call(model_dir, in_a_list(seen), every=2, use_tpu=False).train(ones, steps=3)
    assert seen.steps == [0, 1, 2]
    assert seen.sizes == {(1, 4)}


def test_evaluation_calls_it_for_every_batch(model_dir):
    seen = Seen()
    model = with_host_call(model_dir, in_a_list(seen), every=2)
    model.train(ones, steps=2)
    seen.steps.clear()
    model.evaluate(ones, steps=3)
    assert seen.steps == [2, 2, 2]


@pytest.mark.parametrize(("method", "times"), [("train", 0), ("evaluate", 3)])
def test_without_tensors_training_does_not_call_it(model_dir, method, times):
    calls = []

    def host_fn():
        return tf1.py_func(lambda: calls.append(1) or np.int64(0), [], tf.int64)

    model = with_host_call(model_dir, lambda step, features: (host_fn, []))
    getattr(model, method)(ones, steps=3)
    assert len(calls) == times


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.evidence("host_call", "cpu")
def test_it_writes_summaries_of_the_steps_that_it_chooses(model_dir, every, tmp_path):
    folder = str(tmp_path / "host")

    def host_fn(step, features):
        step = step[0]
        with (
            tf.summary.create_file_writer(folder).as_default(),
            tf.summary.record_if(tf.equal(step % 2, 0)),
        ):
            tf.summary.write("step", tf.cast(step, tf.float32), step=step)
            return tf1.summary.all_v2_summary_ops()

    with_host_call(model_dir, in_a_list(host_fn), every).train(ones, steps=11)
    (file,) = Path(folder).iterdir()
    events = [e for e in tf1.train.summary_iterator(str(file)) if e.summary.value]
    values = [float(tf.make_ndarray(e.summary.value[0].tensor)) for e in events]
    assert values == {1: [0, 2, 4, 6, 8, 10], 2: [0, 2, 4, 10]}[every]
    assert [e.step for e in events] == values


def test_what_a_core_computes_must_be_given_to_it(model_dir):
    def captures(step, features):
        doubled = features * 2
        return lambda step: tf.reduce_sum(doubled), [step]

    with pytest.raises(
        RecordingError, match=r"host_call .* captures a tensor of model_fn"
    ) as error:
        with_host_call(model_dir, captures).train(ones, steps=1)
    assert "doubled = features * 2" in str(error.value)
    assert "tf.reduce_sum(doubled)" in str(error.value)


def test_on_the_host_it_may_use_anything(model_dir):
    def captures(step, features):
        return lambda step: tf.reduce_sum(features), [step]

    model = with_host_call(model_dir, captures, use_tpu=False)
    model.train(ones, steps=1)
    assert model.get_variable_value("weight") == 1.0


def test_summaries_that_nobody_would_write_are_refused(model_dir):
    def host_fn(step, features):
        return tf1.summary.scalar("mean", tf.reduce_mean(features))

    with pytest.raises(ValueError, match=r"Please use tf.contrib.summary instead") as error:
        with_host_call(model_dir, in_a_list(host_fn)).train(ones, steps=1)
    assert 'tf1.summary.scalar("mean"' in str(error.value)


def test_scalars_of_cores_cannot_be_joined(model_dir):
    def scalar(step, features):
        return lambda mean: mean, [tf.reduce_mean(features)]

    with pytest.raises(RuntimeError, match=r"should preserve batch size dimension"):
        with_host_call(model_dir, scalar).train(ones, steps=1)
