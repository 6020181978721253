"""Computations for a TPU in a plain Session: `e2s run --emulate-tpu-cores=1 rewritten.py`."""

import json

import tensorflow as tf

tpu = tf.contrib.tpu


def train_step(x, y):
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
    return loss, optimizer.minimize(loss)


def loop(x):
    return tpu.repeat(3, lambda total: [total + tf.reduce_sum(x)], [tf.constant(1.0)])


def main():
    x, y = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[1.0], [2.0]])
    trained = tpu.rewrite(train_step, [x, y])
    nothing = tf.tpu.rewrite(lambda: None)
    sharded = tpu.shard(lambda part: [part * 2, tf.reduce_sum(part)], [x], num_shards=1)
    parallel = tpu.batch_parallel(lambda part: part + 1.0, [x], num_shards=1)
    repeated = tpu.rewrite(loop, [x])
    named = tpu.rewrite(lambda: {"a": tf.constant(1.0), "b": [tf.constant(2.0)]})
    with tf.Session() as session:
        session.run(tpu.initialize_system())
        session.run(tf.global_variables_initializer())
        losses = [session.run(trained)[0] for _ in range(3)]
        results = session.run([sharded, parallel, repeated, named, nothing])
        session.run(tpu.shutdown_system())
    found = {
        "losses": losses,
        "sharded": results[0],
        "parallel": results[1],
        "repeated": results[2],
        "named": results[3],
        "nothing": results[4],
    }
    return json.loads(json.dumps(found, default=lambda value: value.tolist()))


if __name__ == "__main__":
    print(json.dumps(main()))
