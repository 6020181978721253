"""An input_fn on a pod, whose other hosts cannot call Python functions of this process."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.errors import UnsupportedError
from tests.engine.runtime.programs import falling_on_cores
from tests.rehearsal import rehearsal

tf1 = tf.compat.v1
tpu = estimator.tpu


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


def train(model_dir, runtime, input_fn):
    pipeline = tpu.InputPipelineConfig.PER_HOST_V2
    config = tpu.RunConfig(
        model_dir=model_dir,
        cluster=runtime.resolver(),
        tpu_config=tpu.TPUConfig(per_host_input_for_training=pipeline),
    )
    model = tpu.TPUEstimator(falling_on_cores, config=config, train_batch_size=8)
    model.train(input_fn, steps=1)
    return model.get_variable_value("weight")


@pytest.mark.evidence("hosts", "rehearsed")
@pytest.mark.parametrize("input_fn", [generated, mapped_by_python])
def test_python_functions_that_another_host_is_to_call_are_refused(model_dir, input_fn):
    with rehearsal(num_hosts=2, cores_per_host=2) as runtime:
        words = rf"on another host, /job:worker.*{__name__.rpartition('.')[2]}.py:\d+: dataset = "
        with pytest.raises(UnsupportedError, match=words):
            train(model_dir, runtime, input_fn)


def test_python_functions_of_this_host_are_called(model_dir):
    with rehearsal(num_hosts=1, cores_per_host=2) as runtime:
        assert train(model_dir, runtime, generated) == -1.0
