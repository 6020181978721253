"""Modules of sonnet 1.x in a model_fn: MLP, convolution, batch norm, an LSTM unrolled."""

import json
import tempfile

import numpy as np
import sonnet as snt
import tensorflow as tf

random = np.random.RandomState(0)
images = random.rand(32, 6, 6, 1).astype(np.float32)
labels = (images.mean((1, 2, 3)) > 0.5).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"image": images}, labels)).batch(8)


def start(shape, dtype=None, partition_info=None):
    return tf.constant(np.linspace(-1, 1, np.prod(shape)).reshape(shape), tf.float32)


class Network(snt.AbstractModule):
    """Rows of convolved images, read by an LSTM."""

    def _build(self, image, is_training):
        image = snt.Conv2D(4, 3, initializers={"w": start}, name="conv")(image)
        image = tf.nn.relu(snt.BatchNorm(name="norm")(image, is_training, test_local_stats=False))
        rows = snt.BatchFlatten(preserve_dims=2)(tf.transpose(image, [1, 0, 2, 3]))
        lstm = snt.LSTM(8, initializers={"w_gates": start, "b_gates": start})
        state = lstm.zero_state(tf.shape(image)[0], tf.float32)
        outputs, _ = tf.nn.dynamic_rnn(lstm, rows, initial_state=state, time_major=True)
        return snt.nets.MLP([4, 2], initializers={"w": start}, name="mlp")(outputs[-1])


def model_fn(features, labels, mode):
    logits = Network()(features["image"], mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        step = tf.train.get_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


config = tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp())
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn)
results = estimator.evaluate(input_fn)
results["variables"] = len(estimator.get_variable_names())
print("RESULT", json.dumps({k: float(v) for k, v in sorted(results.items())}))
