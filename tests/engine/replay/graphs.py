"""Small v1 models, one per thing that is easily lost between a Session and a replay.

Each function builds a model on `features` ([batch, 4] float32) in the default graph and returns
(train_op, loss).
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def _dense(x, units, name, **kwargs):
    kernel = tf1.get_variable(f"{name}/kernel", [x.shape[1], units], **kwargs)
    bias = tf1.get_variable(f"{name}/bias", [units], initializer=tf1.zeros_initializer())
    return tf.matmul(x, kernel) + bias


def _loss(x):
    return tf.reduce_mean(tf.square(_dense(tf.tanh(_dense(x, 5, "hidden")), 1, "out")))


def _minimize(loss, optimizer=None, **kwargs):
    optimizer = optimizer or tf1.train.GradientDescentOptimizer(0.1)
    optimizer = tf1.tpu.CrossShardOptimizer(optimizer)
    return optimizer.minimize(loss, global_step=tf1.train.get_global_step(), **kwargs)


def adam_with_decay(features):
    rate = tf1.train.exponential_decay(0.01, tf1.train.get_global_step(), 2, 0.5)
    loss = _loss(features)
    return _minimize(loss, tf1.train.AdamOptimizer(rate)), loss


def hash_table(features):
    keys, values = tf.constant(["a", "b"]), tf.constant([0.5, 2.0])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1.0)
    loss = _loss(features) * table.lookup(tf.constant("b"))
    return _minimize(loss), loss


def py_func(features):
    doubled = tf1.py_func(lambda x: np.float32(2) * x, [features], tf.float32)
    doubled.set_shape(features.shape)
    loss = _loss(doubled)
    return _minimize(loss), loss


def cond_with_gradients(features):
    loss = tf.cond(
        tf.reduce_sum(features) > 0, lambda: _loss(features), lambda: 2.0 * _loss_again(features)
    )
    return _minimize(loss), loss


def _loss_again(features):
    with tf1.variable_scope("", reuse=tf1.AUTO_REUSE):
        return _loss(features)


def while_loop_with_gradients(features):
    weight = tf1.get_variable("w", [4, 4], initializer=tf1.initializers.identity(0.5))

    def body(i, x):
        return i + 1, tf.tanh(tf.matmul(x, weight))

    _, x = tf1.while_loop(lambda i, x: i < 3, body, [0, features], maximum_iterations=3)
    loss = tf.reduce_mean(tf.square(x))
    return _minimize(loss), loss


def dynamic_rnn(features):
    from tf_keras.api._v1.keras.__internal__.legacy import rnn_cell

    sequence = tf.stack([features, features * 0.5, -features], axis=1)
    outputs, _ = tf1.nn.dynamic_rnn(rnn_cell.BasicLSTMCell(3), sequence, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs))
    return _minimize(loss), loss


def partitioned_variable(features):
    weight = tf1.get_variable("p/w", [4, 3], partitioner=tf1.fixed_size_partitioner(2))
    loss = tf.reduce_mean(tf.square(tf.matmul(features, tf.convert_to_tensor(weight))))
    return _minimize(loss, tf1.train.AdamOptimizer(0.1)), loss


def moving_average(features):
    loss = _loss(features)
    train = _minimize(loss)
    average = tf1.train.ExponentialMovingAverage(0.9, tf1.train.get_global_step())
    with tf.control_dependencies([train]):
        return average.apply(tf1.trainable_variables()), loss


def two_optimizers(features):
    with tf1.variable_scope("generator"):
        first = _loss(features)
    with tf1.variable_scope("discriminator"):
        second = _loss(-features)
    mine = tf1.trainable_variables("generator")
    train = [
        _minimize(first, var_list=mine),
        _minimize(second, tf1.train.MomentumOptimizer(0.1, 0.9), var_list=_others(mine)),
    ]
    return tf.group(*train), first + second


def _others(variables):
    names = {v.name for v in variables}
    return [v for v in tf1.trainable_variables() if v.name not in names]


def gradient_penalty(features):
    loss = _loss(features)
    (gradient,) = tf.gradients(loss, [features])
    loss += tf.reduce_sum(tf.square(gradient))
    return _minimize(loss), loss


def gradient_accumulation(features):
    """Applies the mean gradient of every second step: a sum over cores in a branch of a cond."""
    loss = _loss(features)
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
    step = tf1.train.get_global_step()
    sums, updates = [], []
    for gradient, variable in optimizer.compute_gradients(loss):
        total = tf1.get_variable(
            f"{variable.op.name}_sum",
            variable.shape,
            initializer=tf1.zeros_initializer(),
            trainable=False,
        )
        updates.append(tf1.assign_add(total, gradient))
        sums.append((total, variable))

    def apply():
        scaled = [(total.read_value() / 2, variable) for total, variable in sums]
        with tf.control_dependencies([optimizer.apply_gradients(scaled)]):
            return tf.group(*(tf1.assign(total, tf.zeros_like(total)) for total, _ in sums))

    with tf.control_dependencies(updates):
        apply_now = tf.cond(tf.equal(step % 2, 1), apply, tf.no_op)
    with tf.control_dependencies([apply_now]):
        return tf1.assign_add(step, 1), loss


def unordered_assignment(features):
    """BERT's way: the step is assigned beside the update, with no edge between the two."""
    step = tf1.train.get_global_step()
    loss = _loss(features)
    rate = 0.1 / tf.cast(step + 1, tf.float32)
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(rate))
    train = optimizer.apply_gradients(optimizer.compute_gradients(loss))
    return tf.group(train, [step.assign(step + 1)]), loss


def embedding_lookup(features):
    table = tf1.get_variable("table", [10, 4])
    rows = tf.cast(tf.abs(features[:, 0]) * 3, tf.int32) % 10
    loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, rows) * features))
    return _minimize(loss, tf1.train.AdagradOptimizer(0.1)), loss


def scatter_updates(features):
    counts = tf1.get_variable(
        "counts", [3], initializer=tf1.zeros_initializer(), trainable=False, use_resource=True
    )
    loss = _loss(features)
    with tf.control_dependencies([_minimize(loss)]):
        return tf1.scatter_add(counts, [1, 2], [1.0, 2.0]), loss


MODELS = [
    adam_with_decay,
    cond_with_gradients,
    dynamic_rnn,
    embedding_lookup,
    gradient_accumulation,
    gradient_penalty,
    hash_table,
    moving_average,
    partitioned_variable,
    py_func,
    scatter_updates,
    two_optimizers,
    unordered_assignment,
    while_loop_with_gradients,
]
