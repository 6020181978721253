"""Recommendations, pairs, adversaries, agents and loops."""

from shared import BATCH, arrays, classified, images, records


def word_pairs(tf, loss="nce_loss"):
    batch = arrays(tf, x=("int64", []), y=("int64", [1]))
    net = tf.nn.embedding_lookup(tf.get_variable("words", [50, 8]), batch["x"])
    weights, biases = tf.get_variable("w", [50, 8]), tf.get_variable("b", [50])
    return tf.reduce_mean(getattr(tf.nn, loss)(weights, biases, batch["y"], net, 5, 50))


def factorized(tf):
    batch = arrays(tf, user=("int64", []), item=("int64", []), y=("float32", []))
    users = tf.get_variable(
        "users", [50, 4], partitioner=tf.fixed_size_partitioner(3), initializer=tf.zeros_initializer
    )
    item = tf.gather(tf.get_variable("items", [40, 4]), batch["item"])
    user = tf.nn.embedding_lookup(users, batch["user"], partition_strategy="div")
    made = tf.reduce_sum(user * item, 1)
    tf.metrics.root_mean_squared_error(batch["y"], made)
    return tf.losses.mean_squared_error(batch["y"], made)


def sparse_machine(tf):
    spec = {
        "ids": tf.VarLenFeature(tf.int64),
        "w": tf.VarLenFeature(tf.float32),
        "y": tf.FixedLenFeature([1], tf.float32),
    }
    batch = records(tf, spec)
    factors = tf.get_variable("factors", [50, 4])
    total = tf.nn.embedding_lookup_sparse(factors, batch["ids"], batch["w"], combiner="sum")
    squares = tf.nn.embedding_lookup_sparse(factors**2, batch["ids"], None, combiner="sum")
    logits = 0.5 * tf.reduce_sum(total**2 - squares, 1, keep_dims=True)
    merged = tf.sparse_merge(batch["ids"], batch["w"], 50)
    logits += tf.sparse_tensor_dense_matmul(merged, tf.get_variable("linear", [50, 1]))
    tf.metrics.auc(batch["y"], tf.sigmoid(logits))
    return tf.losses.sigmoid_cross_entropy(batch["y"], logits)


def pairs(tf, loss="contrastive"):
    batch = arrays(tf, a=("float32", [6]), b=("float32", [6]), y=("int64", []))

    def tower(x):
        with tf.variable_scope("tower", reuse=tf.AUTO_REUSE):
            return tf.nn.l2_normalize(tf.layers.dense(x, 4), 1)

    a, b = tower(batch["a"]), tower(batch["b"])
    if loss == "contrastive":
        far = tf.sqrt(tf.reduce_sum(tf.square(a - b), 1) + 1e-6)
        same = tf.to_float(batch["y"])
        return tf.reduce_mean(same * far**2 + (1 - same) * tf.maximum(1 - far, 0) ** 2)
    if loss == "triplet":
        return tf.contrib.losses.metric_learning.triplet_semihard_loss(batch["y"], a)
    dots = tf.matmul(a, b, transpose_b=True)
    others = tf.boolean_mask(dots, tf.logical_not(tf.cast(tf.eye(tf.shape(a)[0]), tf.bool)))
    return tf.reduce_mean(tf.nn.relu(1 - tf.diag_part(dots))) + tf.reduce_mean(others)


def adversaries(tf):
    x, _ = images(tf)

    def judged(images):
        with tf.variable_scope("judge", reuse=tf.AUTO_REUSE):
            return tf.layers.dense(tf.layers.flatten(images), 1)

    noise = tf.random_uniform([BATCH, 6], -1.0, 1.0)
    made = tf.reshape(tf.layers.dense(noise, 784, tf.nn.tanh), [-1, 28, 28, 1])
    real, false = judged(x), judged(made)
    slope = tf.gradients(judged(0.5 * (x[:BATCH] + made)), [made])[0]
    penalty = tf.reduce_mean((tf.norm(tf.layers.flatten(slope), axis=1) - 1.0) ** 2)
    return tf.reduce_mean(false) - tf.reduce_mean(real) + penalty


def q_learning(tf):
    batch = arrays(tf, s=("float32", [4]), t=("float32", [4]), a=("int32", []), r=("float32", []))

    def values(state, name):
        with tf.variable_scope(name):
            return tf.layers.dense(tf.layers.dense(state, 8, tf.nn.relu), 3)

    chosen = tf.reduce_sum(values(batch["s"], "q") * tf.one_hot(batch["a"], 3), 1)
    target = batch["r"] + 0.9 * tf.reduce_max(values(batch["t"], "target"), 1)
    pairs_of = zip(tf.global_variables("target"), tf.global_variables("q"))
    tf.group(*[old.assign(0.9 * old + 0.1 * new) for old, new in pairs_of])
    return tf.losses.huber_loss(tf.stop_gradient(target), chosen)


def policy(tf):
    batch = arrays(tf, s=("float32", [4]), a=("int32", []), r=("float32", []))
    logits = tf.layers.dense(batch["s"], 3)
    likely = tf.nn.log_softmax(logits)
    chosen = tf.gather_nd(likely, tf.stack([tf.range(tf.shape(likely)[0]), batch["a"]], 1))
    tf.multinomial(logits, 1)
    return -tf.reduce_mean(chosen * tf.cumsum(batch["r"], reverse=True))


def mixtures(tf):
    batch = arrays(tf, x=("float32", [3]), y=("float32", [1]))
    shares, means, widths = tf.split(tf.layers.dense(batch["x"], 12), 3, 1)
    near = -0.5 * ((batch["y"] - means) * tf.exp(-widths)) ** 2 - widths
    return -tf.reduce_mean(tf.reduce_logsumexp(tf.nn.log_softmax(shares) + near, 1))


def loops(tf, kind):
    batch = arrays(tf, x=("float32", [3]), y=("float32", [3]))
    weights = tf.get_variable("w", [3, 3])

    def step(net):
        return tf.tanh(tf.matmul(net, weights))

    if kind == "while":
        _, net = tf.while_loop(
            lambda i, _: i < 4, lambda i, net: (i + 1, step(net)), [tf.constant(0), batch["x"]]
        )
    elif kind == "cond":
        use = tf.placeholder_with_default(True, [])
        net = tf.cond(use, lambda: step(batch["x"]), lambda: batch["x"])
    elif kind == "map":
        net = tf.map_fn(lambda row: tf.squeeze(step(row[tf.newaxis]), 0), batch["x"])
    elif kind == "scan":
        rows = tf.scan(lambda sum_, row: sum_ + row, batch["x"], tf.zeros([3]))
        net = step(rows)
    else:
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for i in range(3):
            array = array.write(i, step(batch["x"])[:, i])
        net = tf.transpose(array.stack())
    return tf.losses.mean_squared_error(batch["y"], net)


def python_in_between(tf):
    x, y = images(tf)
    net = tf.py_func(lambda value: value, [tf.layers.flatten(x)], tf.float32)
    net.set_shape([None, 784])
    return classified(tf, y, net)


def ordered_by_hand(tf):
    """A loss whose gradients a program clips, and applies beside a moving average."""
    x, y = images(tf)
    loss = classified(tf, y, tf.layers.flatten(x))
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 100, 0.9)
    apply = tf.train.RMSPropOptimizer(rate).apply_gradients(zip(gradients, variables), step)
    with tf.control_dependencies([apply]):
        tf.train.ExponentialMovingAverage(0.9, step).apply(variables)
    return loss
