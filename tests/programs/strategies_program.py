"""Trains a few Estimators of TF 1.x one after the other; prints what each of them saw and learned.

The gradient of the weight is minus the mean of the batch, and batches are 1, 2, 3, ...: what is
learned tells which batches a step took.
"""

import json
import sys
import tempfile

import tensorflow as tf

tpu = tf.contrib.tpu


def model_fn(features, labels, mode, params):
    seen.append(tf.distribute.get_strategy().num_replicas_in_sync)
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = -tf.reduce_mean(features) * weight
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    if params.get("use_tpu"):
        optimizer = tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    spec = tpu.TPUEstimatorSpec if "use_tpu" in params else tf.estimator.EstimatorSpec
    return spec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    batch_size = params.get("batch_size", 1)
    numbers = tf.data.Dataset.range(1, 1000).map(lambda n: (tf.to_float(n), 0.0))
    return numbers.batch(batch_size, drop_remainder=True)


def host(**config):
    config = tf.estimator.RunConfig(model_dir=tempfile.mkdtemp(), **config)
    return tf.estimator.Estimator(model_fn, config=config, params={})


def host_of_cluster(strategy):
    config = tf.estimator.RunConfig(train_distribute=strategy)  # TF_CONFIG has the model_dir
    return tf.estimator.Estimator(model_fn, config=config, params={})


def tpu_estimator(use_tpu, batch_size):
    config = tpu.RunConfig(model_dir=tempfile.mkdtemp())
    return tpu.TPUEstimator(
        model_fn,
        config=config,
        params={"any": 1},
        use_tpu=use_tpu,
        train_batch_size=batch_size,
        eval_batch_size=batch_size,
    )


class Weight(tf.train.SessionRunHook):
    def end(self, session):
        self.value = float(session.run("weight:0"))


ESTIMATORS = {
    "cluster": lambda: tf.estimator.Estimator(model_fn, params={}),  # TF_CONFIG has the model_dir
    "own strategy of the cluster": lambda: host_of_cluster(
        tf.distribute.experimental.MultiWorkerMirroredStrategy()
    ),
    "contrib strategy of the cluster": lambda: host_of_cluster(
        tf.contrib.distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=0)
    ),
    "host": host,
    "own strategy": lambda: host(train_distribute=tf.distribute.OneDeviceStrategy("cpu:0")),
    "TPUEstimator on the host": lambda: tpu_estimator(False, 1),
    "TPUEstimator": lambda: tpu_estimator(True, 2),
}

for name in sys.argv[1:]:
    seen = []
    estimator, weight = ESTIMATORS[name](), Weight()
    estimator.train(input_fn, steps=2, hooks=[weight])
    if estimator.config.is_chief:
        estimator.evaluate(input_fn, steps=1)
    print(json.dumps([name, seen, weight.value]))
