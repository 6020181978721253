"""Which part of the input each core gets, and what input_fn is told of it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import hooks
from estimator2strategy.errors import RecordingError
from tests.engine.runtime.programs import (
    cores_estimator,
    falling,
    falling_on_cores,
    ones,
)
from tests.hooks import LossRecorder

tf1 = tf.compat.v1
tpu = estimator.tpu
pipelines = tpu.InputPipelineConfig


@pytest.fixture(autouse=True)
def _two_cores(emulated_cores):
    emulated_cores(2)


def with_tpu_config(model_dir, model_fn=falling_on_cores, kwargs=None, **tpu_config):
    config = tpu.RunConfig(model_dir=model_dir, tpu_config=tpu.TPUConfig(**tpu_config))
    sizes = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 16}
    return tpu.TPUEstimator(model_fn, config=config, **{**sizes, **(kwargs or {})})


def counted(count):
    """input_fn: the features 0, 1, ... `count - 1`, the last batch as short as it must be."""

    def input_fn(params):
        return tf.data.Dataset.range(count).map(float_of).batch(params["batch_size"])

    return input_fn


def float_of(number):
    return tf.cast(number, tf.float32)


def echo(features, labels, mode, params):
    """model_fn: predicts each example, and how many there are on its core."""
    spec = falling_on_cores(features, labels, mode, params)
    if mode != estimator.ModeKeys.PREDICT:
        return spec
    size = features.shape[0].value
    predictions = {"x": features, "size": tf.fill([size], size)}
    return tpu.TPUEstimatorSpec(mode, predictions=predictions)


@pytest.mark.evidence("inputs", "cpu")
def test_batches_are_split_along_batch_axis(model_dir):
    def input_fn(params):
        columns = tf.tile(tf.reshape(tf.range(4.0), [1, 4]), [3, 1])
        return tf.data.Dataset.from_tensors((columns, tf.range(4.0))).repeat()

    def model_fn(features, labels, mode, params):
        assert features.shape.as_list() == [3, 2]
        apart = tf.reduce_max(tf.abs(features - labels))  # 0: these columns have these labels
        return falling_on_cores(tf.reshape(apart, [1]), None, mode, params)

    recorder = LossRecorder()
    model = cores_estimator(model_dir, model_fn, batch_axis=[1, 0])
    model.train(input_fn, hooks=[recorder], steps=1)
    assert recorder.losses == [0.0]


@pytest.mark.evidence("inputs", "cpu")
def test_sliced_evaluation_cuts_one_global_batch(model_dir):
    seen = []

    def input_fn(params):
        context = params["context"]
        seen.append((params["batch_size"], context.current_input_fn_deployment()[1:]))
        return tf.data.Dataset.from_tensors(tf.range(4.0)).repeat()

    def model_fn(features, labels, mode, params):
        seen.append((params["batch_size"], features.shape.as_list()))
        first = tf.reshape(features[0], [1])
        return tpu.TPUEstimatorSpec(
            mode, loss=features[0], eval_metrics=(lambda x: {"sum": tf1.metrics.mean(x)}, [first])
        )

    sliced = {"eval_training_input_configuration": pipelines.SLICED}
    results = with_tpu_config(model_dir, model_fn, **sliced).evaluate(input_fn, steps=2)
    assert seen == [(4, (0, 1, 2)), (2, [2])]
    assert results["loss"] == results["sum"] == 1.0  # cores begin with 0 and with 2


def test_sliced_evaluation_needs_cores(model_dir):
    model = with_tpu_config(
        model_dir,
        kwargs={"use_tpu": False},
        eval_training_input_configuration=pipelines.SLICED,
    )
    with pytest.raises(ValueError, match=r"SLICED mode only works on use_tpu = True"):
        model.evaluate(ones, steps=1)


def test_one_shard_is_one_core(model_dir):
    seen = []

    def input_fn(params):
        context = params["context"]
        seen.append((context.num_replicas, params["batch_size"]))
        return ones(params)

    model = with_tpu_config(model_dir, num_shards=1)
    model.train(input_fn, steps=2)
    assert seen == [(1, 4)]
    assert model.get_variable_value("weight") == -2.0


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.evidence("inputs", "cpu")
def test_cores_draw_batches_in_turn(model_dir, parallel):
    recorder = LossRecorder()
    model = with_tpu_config(
        model_dir,
        iterations_per_loop=1,
        per_host_input_for_training=pipelines.PER_HOST_V2,
        experimental_allow_per_host_v2_parallel_get_next=parallel,
    )
    model.train(lambda params: numbered(params["batch_size"]), hooks=[recorder], steps=2)
    assert recorder.losses == [1.5, 5.5]  # means of 0 to 3 and of 4 to 7


def numbered(batch_size):
    return tf.data.Dataset.range(8).map(float_of).batch(batch_size, drop_remainder=True)


@pytest.mark.parametrize(
    ("pipeline", "on_a_core"),
    [
        (pipelines.PER_HOST_V1, 8),
        (pipelines.PER_HOST_V2, 8),
        (pipelines.BROADCAST, 16),
    ],
)
@pytest.mark.evidence("prediction", "cpu")
def test_examples_that_fill_no_batch_are_predicted_once(model_dir, pipeline, on_a_core):
    model = with_tpu_config(model_dir, echo, per_host_input_for_training=pipeline)
    predictions = list(model.predict(counted(24)))
    assert [p["x"] for p in predictions] == list(range(24))
    assert {int(p["size"]) for p in predictions} == {on_a_core}


@pytest.mark.parametrize("use_tpu", [True, False])
def test_labels_reach_model_fn_in_prediction_on_cores(model_dir, use_tpu):
    seen = []

    def input_fn(params):
        pairs = tf.data.Dataset.from_tensors(([1.0], {"y": [2.0]})).repeat(3)
        return pairs.batch(params["batch_size"])

    def model_fn(features, labels, mode, params):
        seen.append(labels and labels["y"].shape.as_list())
        return tpu.TPUEstimatorSpec(mode, predictions={"x": features})

    kwargs = {"use_tpu": use_tpu, "predict_batch_size": 4}
    model = with_tpu_config(model_dir, model_fn, kwargs=kwargs)
    assert len(list(model.predict(input_fn))) == 3
    assert seen == [[2, 1] if use_tpu else None]


def test_evaluation_off_the_cores_has_the_global_batch(model_dir):
    seen = []

    def input_fn(params):
        seen.append((params["batch_size"], "context" in params))
        return ones(params)

    def model_fn(features, labels, mode, params):
        seen.append((params["batch_size"], params["use_tpu"]))
        return falling(features, labels, mode, params)

    model = with_tpu_config(model_dir, model_fn, kwargs={"eval_on_tpu": False})
    assert model.evaluate(input_fn, steps=3)["loss"] == 1.0
    assert seen == [(4, False), (4, False)]


@pytest.mark.parametrize(("job", "prefix"), [(None, ""), ("tpu_worker", "/job:tpu_worker")])
def test_devices_are_named_after_the_job(model_dir, job, prefix):
    def input_fn(params):
        context = params["context"]
        replicas = [context.device_for_replica(replica) for replica in range(2)]
        assert replicas == [(f"{prefix}/task:0/device:CPU:0", core) for core in range(2)]
        host = context.tpu_host_placement_function(0)
        assert host == f"{prefix or '/replica:0'}/task:0/device:CPU:0"
        return ones(params)

    with_tpu_config(model_dir, tpu_job_name=job).train(input_fn, steps=1)


def test_first_batch_waits(model_dir, monkeypatch):
    events = []
    monkeypatch.setattr(hooks.time, "sleep", lambda seconds: events.append(("sleep", seconds)))

    def drawn(x):
        events.append("draw")
        return np.float32(x)

    def input_fn(params):
        return ones(params).map(lambda x: tf.ensure_shape(tf1.py_func(drawn, [x], tf.float32), [4]))

    with_tpu_config(model_dir, initial_infeed_sleep_secs=7).train(input_fn, steps=1)
    assert events.count(("sleep", 7)) == 1
    assert "draw" in events


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (lambda: {"x": tf.sparse.from_dense(tf.ones([4, 2]))}, "a part of it is no dense tensor"),
        (lambda: {"x": tf.ones([4]), "k": tf.constant(1)}, "a part of it is a scalar"),
        (lambda: {"x": tf.ones([32])}, "a part of it has more than 16"),
    ],
)
def test_batches_that_cannot_be_filled_up_are_refused_in_prediction(model_dir, element, words):
    def input_fn(params):
        return tf.data.Dataset.from_tensors(element())

    with pytest.raises(RecordingError, match=words):
        next(with_tpu_config(model_dir).predict(input_fn))


def test_batches_of_an_unknown_shape_are_refused_in_prediction(model_dir):
    def input_fn(params):
        return tf.data.Dataset.from_generator(lambda: iter([np.ones([4])]), tf.float32)

    with pytest.raises(RecordingError, match="a part of it has an unknown shape"):
        next(with_tpu_config(model_dir).predict(input_fn))


def test_more_steps_than_an_int32_counts_end_with_the_input(model_dir):
    model = with_tpu_config(model_dir, iterations_per_loop=2**31)
    model.train(lambda params: ones(params).take(3), max_steps=2**31)
    assert model.get_variable_value("global_step") == 3
    assert model.evaluate(lambda params: ones(params).take(3), steps=2**31)["global_step"] == 3
