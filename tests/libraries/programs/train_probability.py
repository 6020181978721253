"""A variational model_fn of tensorflow-probability: distributions, their KL and a bijector."""

import json
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

tfd = tfp.distributions
v1 = tf.compat.v1
random = np.random.RandomState(0)
rows = random.rand(64, 4).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices({"x": rows}).batch(16).repeat(3)


def dense(inputs, units):
    start = np.linspace(-1, 1, inputs.shape[1] * units)
    start = v1.constant_initializer(start.astype(np.float32))
    return v1.layers.dense(inputs, units, kernel_initializer=start)


def model_fn(features, mode):
    hidden = dense(features["x"], 4)
    posterior = tfd.MultivariateNormalDiag(hidden[:, :2], tf.nn.softplus(hidden[:, 2:]))
    prior = tfd.MultivariateNormalDiag(tf.zeros(2), tf.ones(2))
    code = posterior.sample(seed=3)
    decoded = dense(code, 4)
    scale = v1.get_variable("scale", initializer=0.5)
    likelihood = tfd.TransformedDistribution(
        tfd.Independent(tfd.Normal(decoded, tf.exp(scale)), 1), tfp.bijectors.Shift(tf.ones(4))
    )
    divergence = tfd.kl_divergence(posterior, prior)
    loss = tf.reduce_mean(divergence - likelihood.log_prob(features["x"]))
    step = v1.train.get_global_step()
    train_op = v1.train.AdamOptimizer(0.05).minimize(loss, step)
    metrics = {"divergence": v1.metrics.mean(divergence), "scale": v1.metrics.mean(scale)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


config = tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp())
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn)
print("RESULT", json.dumps({k: float(v) for k, v in sorted(estimator.evaluate(input_fn).items())}))
