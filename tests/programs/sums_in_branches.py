"""A TPUEstimator program whose cores add up in branches, or in a loop, that touch no variable."""

import tempfile

import tensorflow as tf

tpu = tf.contrib.tpu


def cond(number):
    return tf.cond(number > -1.0, lambda: tpu.cross_replica_sum(number), lambda: number)


def cond_in_a_cond(number):
    return tf.cond(number > -2.0, lambda: cond(number), lambda: number)


def loop(number):
    def add(i, total):
        return i + 1, total + tpu.cross_replica_sum(number)

    return tf.while_loop(lambda i, _: i < 2, add, [0, 0.0], back_prop=False)[1] / 2.0


def model_fn(features, labels, mode, params):
    number, add_up = tf.reduce_mean(features), params["add_up"]
    return tpu.TPUEstimatorSpec(mode, loss=add_up(number) + add_up(10.0 * number))


def input_fn(params):
    numbers = tf.data.Dataset.range(100).map(lambda number: tf.cast(number, tf.float32))
    return numbers.batch(params["batch_size"], drop_remainder=True)


def main():
    """Evaluates two batches, of the numbers 0, 1 and 2, 3, one for each core."""
    config = tpu.RunConfig(model_dir=tempfile.mkdtemp())
    sizes = {"train_batch_size": 2, "eval_batch_size": 2}
    for add_up in (cond, cond_in_a_cond, loop):
        model = tpu.TPUEstimator(model_fn, config=config, params={"add_up": add_up}, **sizes)
        print(model.evaluate(input_fn, steps=2)["loss"])


if __name__ == "__main__":
    main()
