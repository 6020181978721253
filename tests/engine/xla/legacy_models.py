"""Small legacy model_fns, recorded as one core of a TPU sees them.

program = core_program(recorded(dense_net))

Nothing is run: the strategy is a TPU's that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.xla.core_program import core_program
from estimator2strategy.engine.xla.tpus import tpu_strategy
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph

tf1 = tf.compat.v1
tpu = estimator.tpu
FEATURES, CLASSES, BATCH = 4, 3, 64


def input_fn(params: dict[str, Any]) -> tf.data.Dataset:
    size = params["batch_size"]
    batch = (tf.zeros([size, FEATURES]), tf.zeros([size], tf.int32))
    return tf.data.Dataset.from_tensors(batch).repeat()


def with_extra(extra: Callable[[tf.Tensor], Any]) -> Callable:
    """A model_fn of one dense layer and Adam, with `extra(features)` in its loss."""

    def model_fn(features, labels, mode, params):
        return _dense_net(features, labels, mode, extra)

    return model_fn


dense_net = with_extra(lambda features: 0.0)


def _dense_net(features, labels, mode, extra):
    logits = tf.matmul(features, tf1.get_variable("weights", [features.shape[1], CLASSES]))
    if mode == estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    loss += tf.cast(extra(features), tf.float32)
    if mode == estimator.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(_metrics, [labels, logits]))
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(1e-3))
    train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def _metrics(labels, logits):
    return {"accuracy": tf1.metrics.accuracy(labels, tf1.argmax(logits, 1))}


def recorded(
    model_fn: Callable, mode: str = "train", cores: int = 8, batch: int = BATCH, inputs=input_fn
) -> Recording:
    model = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir="/never/written", tpu_config=tpu.TPUConfig(10)),
        train_batch_size=batch,
        eval_batch_size=batch,
        predict_batch_size=batch,
        params={},
        strategy=tpu_strategy(1, cores),
    )
    keys = {"train": ModeKeys.TRAIN, "eval": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}
    with recording_graph(model):
        return record_for(model, keys[mode], inputs)


def program_of(model_fn: Callable, mode: str = "train", **how: Any) -> CoreProgram:
    return core_program(recorded(model_fn, mode, **how))
