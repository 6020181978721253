"""Warms its rate up from 0, as BERT's optimizer does, beside an assignment to the global step.

TensorFlow 1.15 reads the rate before or after that assignment, as threads fall: the first step
moves the weights in six runs of ten.

    e2s record --print > record.py
    rm -r tests/goldens/warmup_tf115
    python3.7 record.py --out tests/goldens/warmup_tf115 --program tests/programs/warmup.py

That is repeated until the first step has moved the weights (`train/updates` of results.npz).
"""

import tensorflow as tf


def model_fn(features, labels, mode):
    out = tf.layers.dense(tf.layers.dense(features, 64, name="hidden"), 1, name="out")
    loss = tf.losses.mean_squared_error(labels, out)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.polynomial_decay(0.1, step, 100, end_learning_rate=0.0, power=1.0)
    done = tf.cast(tf.cast(step, tf.int32), tf.float32) / 10.0
    warm = tf.cast(tf.cast(step, tf.int32) < 10, tf.float32)
    rate = (1.0 - warm) * rate + warm * 0.1 * done
    variables = tf.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train_op = tf.train.GradientDescentOptimizer(rate).apply_gradients(zip(grads, variables))
    train_op = tf.group(train_op, [step.assign(step + 1)])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensors(([[1.0, 2.0]] * 64, [[3.0]] * 64)).repeat()


if __name__ == "__main__":
    config = tf.estimator.RunConfig(tf_random_seed=1)
    tf.estimator.Estimator(model_fn, config=config).train(input_fn, steps=12)
