"""The parcels: where from, how far, how long."""
import numpy as np
import tensorflow as tf


def parcels(count, seed):
    rng = np.random.RandomState(seed)
    distance = rng.uniform(0, 1500, [count, 1]).astype(np.float32)
    depot = rng.randint(0, 12, [count]).astype(np.int64)
    days = distance[:, 0] / 400 + (depot % 3) * 0.7 + rng.uniform(0, 0.5, [count])
    return {"distance": distance, "depot": depot}, (days / 7).astype(np.float32)


def train_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(parcels(1200, 1))
    return data.repeat().batch(params["batch_size"])


def eval_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(parcels(300, 2)).batch(params["batch_size"])
    return data.make_one_shot_iterator().get_next()


def serving_fn():
    inputs = {"distance": tf.placeholder(tf.float32, [None, 1], name="distance"),
              "depot": tf.placeholder(tf.int64, [None], name="depot")}
    return tf.estimator.export.ServingInputReceiver(inputs, inputs)
