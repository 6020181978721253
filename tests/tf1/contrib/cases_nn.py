"""Cases for `tf.contrib.nn`."""

from parity import deep, values


def fwd_gradients(tf):
    from_file = deep(tf, "nn.python.ops.fwd_gradients").fwd_gradients
    x = tf.constant(values([2, 3], "x"), tf.float32)
    y = tf.constant(values([3, 2], "y"), tf.float32)
    unrelated = tf.constant([1.0, 2.0])
    ys = [tf.matmul(x, y), tf.sin(x) * 2.0]
    direction = [tf.constant(values([2, 3], "dx"), tf.float32), tf.ones([3, 2]), tf.ones([2])]
    return {
        "along": from_file(ys, [x, y, unrelated], direction),
        "ones": from_file(ys, [x, y]),
        "checked": from_file(ys, [x, y], assert_unused=True),
    }


def scaled_softplus(tf):
    x = tf.constant(values([7], "x") * 20, tf.float32)
    alpha = tf.constant(0.5)
    smooth = tf.contrib.nn.scaled_softplus(x, alpha)
    clipped = tf.contrib.nn.scaled_softplus(x, 2.0, clip=6.0)
    return {
        "smooth": smooth,
        "clipped": clipped,
        "slope": tf.gradients(smooth, [x, alpha]),
        "slope_clipped": tf.gradients(clipped, x)[0],
    }


def nth_element(tf):
    x = tf.constant(values([2, 5], "x"), tf.float32)
    nth_element = tf.contrib.nn.nth_element
    return {"second": nth_element(x, 1), "largest": nth_element(x, 0, True)}


def alpha_dropout(tf):
    dropout = tf.contrib.nn.alpha_dropout
    x = tf.constant(values([3, 8], "x"), tf.float32)
    return {
        "dropped": dropout(x, 0.6, seed=4),
        "rows": dropout(x, tf.constant(0.5), noise_shape=[3, 1], seed=5),
        "all": dropout(x, 1.0),
    }
