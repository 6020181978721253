"""A model_fn that trains by kfac's optimizer, with its running averages."""

import json
import tempfile

import kfac
import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
rows = random.rand(64, 3).astype(np.float32)
labels = (rows.sum(1) > 1.5).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, labels)).batch(16).repeat(3)


def model_fn(features, labels, mode):
    start = tf.constant_initializer(np.linspace(-1, 1, 6))
    layer = tf.layers.Dense(2, kernel_initializer=start)
    logits = layer(features["x"])
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    if mode != tf.estimator.ModeKeys.TRAIN:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    collection = kfac.LayerCollection()
    collection.register_fully_connected((layer.kernel, layer.bias), features["x"], logits)
    collection.register_categorical_predictive_distribution(logits, seed=1, targets=labels)
    optimizer = kfac.PeriodicInvCovUpdateKfacOpt(
        learning_rate=0.1,
        layer_collection=collection,
        damping=0.01,
        momentum=0.9,
        cov_update_every=1,
        invert_every=2,
        estimation_mode="empirical",
    )
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


config = tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp())
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn)
print("RESULT", json.dumps({k: float(v) for k, v in sorted(estimator.evaluate(input_fn).items())}))
