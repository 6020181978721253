"""A model that does not fit into a TPU's memory: TensorFlow's error, after what to do about it."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.replay.runs import Runs
from tests.engine.runtime.programs import cores_estimator, ones

# What a TPU v2 said of a model, and what TensorFlow says of a CPU or GPU.
OF_A_TPU = (
    "Compilation failure: Ran out of memory in memory space hbm. Used 8.60G of 8.00G hbm. "
    "Exceeded hbm capacity by 616.00M."
)
OF_A_HOST = "OOM when allocating tensor with shape[800000,800000] on /device:CPU:0"


@pytest.fixture
def full(monkeypatch, emulated_cores):
    """`full(message)`: the steps of cores end with such an error."""
    emulated_cores(2)
    run = Runs.run

    def fill(message):
        def failing(self, step, *args, **kwargs):
            if step is not None:
                raise tf.errors.ResourceExhaustedError(None, None, message)
            return run(self, step, *args, **kwargs)

        monkeypatch.setattr(Runs, "run", failing)

    return fill


def test_the_verdict_of_a_tpu_comes_with_the_way_to_the_largest_batch(full, model_dir):
    full(OF_A_TPU)
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        cores_estimator(model_dir).train(ones, steps=1)
    first, *others = raised.value.message.splitlines()
    assert first == "The model does not fit into the memory of a TPU core with this batch."
    assert "--fit-batch" in others[0]
    assert OF_A_TPU in others[1]


def test_the_memory_of_a_host_is_another_matter(full, model_dir):
    full(OF_A_HOST)
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        cores_estimator(model_dir).train(ones, steps=1)
    assert raised.value.message == OF_A_HOST
