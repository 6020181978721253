"""A pod: its other hosts cannot call Python functions, and many hosts start much as one does."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.errors import UnsupportedError
from tests.engine.runtime.programs import falling_on_cores
from tests.rehearsal import rehearsal
from tests.tpu_program import started_training

tf1 = tf.compat.v1
tpu = estimator.tpu
Pipeline = tpu.InputPipelineConfig


def generated(params):
    def examples():
        yield from [1.0] * 8

    dataset = tf.data.Dataset.from_generator(examples, tf.float32, [])
    return dataset.repeat().batch(params["batch_size"], drop_remainder=True)


def mapped_by_python(params):
    def same(value):
        return tf.ensure_shape(tf1.py_func(lambda x: x, [value], tf.float32), [])

    dataset = tf.data.Dataset.from_tensors(1.0).map(same)
    return dataset.repeat().batch(params["batch_size"], drop_remainder=True)


def interleaved_from_python(params):
    def examples_of(number):
        return tf.data.Dataset.from_tensors(number).map(
            lambda x: tf.ensure_shape(tf.numpy_function(lambda x: x, [x], tf.float32), [])
        )

    dataset = tf.data.Dataset.from_tensor_slices([1.0, 1.0]).interleave(examples_of)
    return dataset.repeat().batch(params["batch_size"], drop_remainder=True)


def tensors_from_python(params):
    value = tf1.py_func(lambda: [1.0], [], tf.float32)
    return tf.tile(tf.ensure_shape(value, [1]), [params["batch_size"]])


def make(model_dir, runtime, pipeline=Pipeline.PER_HOST_V2):
    config = tpu.RunConfig(
        model_dir=model_dir,
        cluster=runtime.resolver(),
        tpu_config=tpu.TPUConfig(per_host_input_for_training=pipeline),
    )
    return tpu.TPUEstimator(falling_on_cores, config=config, train_batch_size=8)


@pytest.mark.evidence("hosts", "rehearsed")
@pytest.mark.parametrize(
    ("input_fn", "pipeline", "words"),
    [
        (generated, Pipeline.PER_HOST_V2, "dataset = "),
        (mapped_by_python, Pipeline.PER_HOST_V2, "dataset = "),
        (interleaved_from_python, Pipeline.PER_HOST_V2, "dataset = "),
        (generated, Pipeline.PER_HOST_V1, "dataset = "),
        (tensors_from_python, Pipeline.PER_SHARD_V1, "value = "),
    ],
)
def test_python_functions_that_another_host_is_to_call_are_refused(
    tmp_path, input_fn, pipeline, words
):
    with rehearsal(num_hosts=2, cores_per_host=2) as runtime:
        line = rf"on another host, /job:worker.*{__name__.rpartition('.')[2]}.py:\d+: {words}"
        with pytest.raises(UnsupportedError, match=line):
            make(str(tmp_path), runtime, pipeline).train(input_fn, steps=1)
    assert not list(tmp_path.glob("*"))  # no checkpoint of step 0: nothing has begun


def test_python_functions_of_this_host_are_called(model_dir):
    with rehearsal(num_hosts=1, cores_per_host=2) as runtime:
        model = make(model_dir, runtime)
        model.train(generated, steps=1)
        assert model.get_variable_value("weight") == -1.0


@pytest.mark.evidence("hosts", "traced")
def test_steps_have_one_handle_for_all_copies_of_a_variable(model_dir):
    """Else tracing for 32 hosts would take as many times longer as there are cores."""

    def captures(num_hosts):
        def input_fn(params):
            dataset = tf.data.Dataset.from_tensors(1.0).repeat()
            return dataset.batch(params["batch_size"], drop_remainder=True)

        with rehearsal(num_hosts, 2, runs=False) as runtime:
            function, _ = started_training(make(model_dir, runtime), input_fn)
            return len(function.graph.captures) - num_hosts  # each host has an iterator

    assert captures(1) == captures(2) == captures(4)
