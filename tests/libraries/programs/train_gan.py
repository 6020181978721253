"""GANEstimator of tensorflow-gan: four rounds of generator and discriminator."""

import json
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_gan as tfgan

random = np.random.RandomState(0)
noise = random.rand(64, 2).astype(np.float32)
real = (1 + random.rand(64, 2)).astype(np.float32)


def input_fn(mode):
    dataset = tf.data.Dataset.from_tensor_slices((noise, real)).batch(16)
    return dataset.repeat() if mode == tf.estimator.ModeKeys.TRAIN else dataset


def dense(inputs, units):
    start = np.linspace(-1, 1, inputs.shape[1] * units)
    return tf.layers.dense(inputs, units, kernel_initializer=tf.constant_initializer(start))


def generator(inputs, mode):
    return dense(inputs, 2)


def discriminator(inputs, conditioning, mode):
    return dense(tf.tanh(dense(inputs, 4)), 1)


estimator = tfgan.estimator.GANEstimator(
    model_dir=tempfile.mkdtemp(),
    generator_fn=generator,
    discriminator_fn=discriminator,
    generator_loss_fn=tfgan.losses.wasserstein_generator_loss,
    discriminator_loss_fn=tfgan.losses.wasserstein_discriminator_loss,
    generator_optimizer=tf.train.GradientDescentOptimizer(0.1),
    discriminator_optimizer=tf.train.GradientDescentOptimizer(0.1),
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
estimator.train(input_fn, steps=4)
results = estimator.evaluate(input_fn)
results["generated"] = np.mean(list(estimator.predict(input_fn)))
print("RESULT", json.dumps({k: float(v) for k, v in sorted(results.items())}))
