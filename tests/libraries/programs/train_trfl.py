"""Q-learning and an actor-critic loss of trfl in a model_fn."""

import json
import tempfile

import numpy as np
import tensorflow as tf
import trfl

random = np.random.RandomState(0)
states = random.rand(64, 3).astype(np.float32)
actions = random.randint(0, 2, 64).astype(np.int32)
rewards = states[np.arange(64), actions]


def input_fn():
    features = {"state": states, "action": actions, "reward": rewards}
    return tf.data.Dataset.from_tensor_slices(features).batch(16)


def dense(inputs, units, name):
    start = np.linspace(-1, 1, inputs.shape[1] * units) * len(name)
    initializer = tf.constant_initializer(start / 6)
    return tf.layers.dense(inputs, units, kernel_initializer=initializer, name=name)


def model_fn(features, mode):
    values = dense(features["state"], 2, name="online")
    target = dense(features["state"], 2, name="target")
    policy = dense(features["state"], 2, name="policy")
    discount = 0.9 * tf.ones_like(features["reward"])
    q_loss, extra = trfl.double_qlearning(
        values, features["action"], features["reward"], discount, target, values
    )
    actor = trfl.discrete_policy_gradient_loss(
        policy[None], features["action"][None], tf.stop_gradient(extra.td_error)[None]
    )
    loss = tf.reduce_mean(q_loss) + tf.reduce_mean(actor)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    with tf.control_dependencies([train_op]):
        update = trfl.update_target_variables(
            tf.trainable_variables("target"), tf.trainable_variables("online"), tau=0.5
        )
    metrics = {"td": tf.metrics.mean(extra.td_error), "best": tf.metrics.mean(extra.best_action)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update, eval_metric_ops=metrics)


config = tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp())
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn)
print("RESULT", json.dumps({k: float(v) for k, v in sorted(estimator.evaluate(input_fn).items())}))
