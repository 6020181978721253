"""A ResNet with batch norm: XLA's program of its step, executed on eight devices."""

from __future__ import annotations

import pytest
import tensorflow as tf

from benchmarks import resnet
from estimator2strategy.estimator import tpu
from tests.step_on_xla import compared, compiled_for

tf1 = tf.compat.v1
BATCH = 32


def model_fn(features, labels, mode, params):
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, resnet.logits(features, training=True))
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.MomentumOptimizer(0.05, 0.9))
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    images, labels = resnet.data(2 * BATCH)
    # Small ones: of millions of units one is as good as 0, where rounding decides if relu has a
    # gradient.
    dataset = tf.data.Dataset.from_tensor_slices((images[:, ::2, ::2], labels)).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


@pytest.mark.slow
@pytest.mark.evidence("resnet", "cpu")
@pytest.mark.evidence("resnet", "xla")
@pytest.mark.evidence("resnet", "compiled", "v2 v3")
def test_the_program_of_a_tpu_computes_the_step_of_emulated_cores(model_dir, emulated_cores):
    emulated_cores(8)
    config = tpu.RunConfig(model_dir=model_dir, tf_random_seed=1, tpu_config=tpu.TPUConfig(1))
    estimator = tpu.TPUEstimator(model_fn, config=config, train_batch_size=BATCH, params={})
    estimator.train(input_fn, max_steps=2)  # a checkpoint with momentum and moving averages
    step = compared(estimator, input_fn, BATCH)
    assert [name for name in ("v2-8", "v3-8") if not compiled_for(step, name).fits] == []
