"""num_cores_per_replica on emulated cores: each replica runs on one of its cores."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import falling_on_cores

tf1 = tf.compat.v1
tpu = estimator.tpu
pipelines = tpu.InputPipelineConfig


def spread(model_dir, per_replica, model_fn=falling_on_cores, pipeline=pipelines.PER_HOST_V2, **kw):
    """A TPUEstimator with global batches of 4."""
    tpu_config = tpu.TPUConfig(
        num_cores_per_replica=per_replica, per_host_input_for_training=pipeline, **kw
    )
    config = tpu.RunConfig(model_dir=model_dir, tpu_config=tpu_config)
    sizes = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}
    return tpu.TPUEstimator(model_fn, config=config, **sizes)


def numbers(params):
    """Batches of 1.0, 2.0, ... 8.0."""
    dataset = tf.data.Dataset.range(1, 9).map(lambda x: tf.cast(x, tf.float32))
    return dataset.repeat().batch(params["batch_size"], drop_remainder=True)


@pytest.mark.oldest
@pytest.mark.parametrize(("num_cores", "per_replica"), [(4, 2), (8, 2), (8, 4)])
@pytest.mark.evidence("partitions", "cpu")
def test_training_is_that_of_as_many_replicas(model_dir, emulated_cores, num_cores, per_replica):
    emulated_cores(num_cores)
    model = spread(model_dir, per_replica)
    model.train(numbers, steps=2)
    assert model.get_variable_value("weight") == -2.5 - 6.5


def test_programs_see_the_cores_of_a_replica(model_dir, emulated_cores, caplog):
    emulated_cores(4)
    seen = {}

    def input_fn(params):
        context = params["context"]
        seen["places"] = [context.device_for_replica(replica)[1] for replica in (0, 1)]
        seen["examples"] = params["batch_size"]
        return numbers(params)

    def model_fn(features, labels, mode, params):
        context = params["context"]
        seen["cores"] = context.device_assignment.num_cores_per_replica
        seen["replicas"] = context.num_replicas
        with tf1.device(tf1.tpu.core(1)):
            return falling_on_cores(features * 1, labels, mode, params)

    spread(model_dir, 2, model_fn).train(input_fn, steps=1)
    assert seen == {"places": [0, 2], "examples": 2, "cores": 2, "replicas": 2}
    (warning,) = [text for text in caplog.messages if "num_cores_per_replica is 2" in text]
    assert "each replica runs on one of them" in warning


@pytest.mark.evidence("partitions", "cpu")
def test_evaluation_and_predictions_are_those_of_a_replica(model_dir, emulated_cores):
    emulated_cores(4)

    model = spread(model_dir, 2)
    model.train(numbers, steps=1)
    assert model.evaluate(numbers, steps=2)["loss"] == 4.5
    sums = [next(model.predict(numbers))["sum"]]
    assert sums == [1.0 - 2.5]


@pytest.mark.parametrize(
    ("per_replica", "hosts"),
    [(2, [(0, 1), (2, 3)]), (4, [(0,), (1,)]), (8, [(0,)])],
)
def test_a_host_feeds_the_replicas_whose_first_core_it_has(
    model_dir, emulated_cores, per_replica, hosts
):
    emulated_cores(8, num_hosts=2)
    deployment = spread(model_dir, per_replica)._deployment("train")
    assert [host.replicas for host in deployment.hosts] == hosts


@pytest.mark.parametrize(("size", "warned"), [(6, False), (5, True)])
def test_parts_of_an_input_are_checked_and_left_whole(
    model_dir, emulated_cores, caplog, size, warned
):
    emulated_cores(2)
    shapes = []

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensors({"x": tf.ones([size])}).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)

    def model_fn(features, labels, mode, params):
        shapes.append(features["x"].shape)
        return falling_on_cores(features["x"], labels, mode, params)

    dims = {"input_partition_dims": [{"x": [1, 2]}, None]}
    spread(model_dir, 2, model_fn, **dims).train(input_fn, steps=1)
    assert shapes == [[4, size]]
    assert ("into 2 parts, which have different sizes" in caplog.text) == warned


@pytest.mark.parametrize(
    ("num_cores", "per_replica", "pipeline", "words"),
    [
        (2, 4, pipelines.PER_HOST_V2, r"larger than the total num of TPU cores"),
        (6, 4, pipelines.PER_HOST_V2, r"cores in the system \(6\) is not divisible by"),
        (8, 8, pipelines.PER_HOST_V1, r"less than or equal to the num_cores_per_host"),
    ],
)
def test_cores_that_cannot_be_dealt_out_are_refused(
    model_dir, emulated_cores, num_cores, per_replica, pipeline, words
):
    emulated_cores(num_cores, num_hosts=2)
    with pytest.raises(ValueError, match=words):
        spread(model_dir, per_replica, pipeline=pipeline).train(numbers, steps=1)


def test_num_shards_counts_replicas(model_dir, emulated_cores):
    emulated_cores(4)
    with pytest.raises(ValueError, match=r"should be \(2\), got \(4\)"):
        spread(model_dir, 2, num_shards=4).train(numbers, steps=1)
