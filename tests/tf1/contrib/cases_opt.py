"""Cases for `tf.contrib.opt`: three steps on a dense and on a sparsely updated variable."""

from parity import deep, values


def _variables(tf):
    return [
        tf.get_variable(
            name, shape, initializer=tf.constant_initializer(values(shape, name).astype("float32"))
        )
        for name, shape in [("weights", [4]), ("table", [6, 4])]
    ]


def _train(tf, optimizer, **kwargs):
    # Gradients that are given: a decay would race with the read of the forward pass.
    weights, table = _variables(tf)
    dense = tf.constant(values([4], "dense"), tf.float32)
    rows = tf.constant(values([3, 4], "rows"), tf.float32)
    sparse = tf.IndexedSlices(rows, tf.constant([1, 3, 1]), tf.constant([6, 4]))
    step = tf.train.get_or_create_global_step()
    train = optimizer.apply_gradients([(dense, weights), (sparse, table)], step, **kwargs)
    kept = {v.op.name: v for v in tf.global_variables()}
    return [{"train": train}, {"train": train}, {"train": train}, kept]


def adam_w(tf):
    return _train(tf, tf.contrib.opt.AdamWOptimizer(0.05, learning_rate=0.1))


def momentum_w(tf):
    return _train(tf, tf.contrib.opt.MomentumWOptimizer(0.05, 0.1, 0.9, use_nesterov=True))


def decay_of_one_variable(tf):
    extended = tf.contrib.opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)
    optimizer = extended(weight_decay=tf.constant(0.05), learning_rate=0.1)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        decayed = _variables(tf)[1:]
        return _train(tf, optimizer, decay_var_list=decayed)


def decay_through_minimize(tf):
    weights, table = _variables(tf)
    loss = tf.reduce_sum(weights * values([4], "c").astype("float32")) + tf.reduce_sum(table)
    optimizer = tf.contrib.opt.MomentumWOptimizer(0.1, 0.5, 0.9)
    train = optimizer.minimize(loss, decay_var_list=[weights])
    return [{"train": train}, {"train": train}, {"weights": weights, "table": table}]


def lars(tf):
    return _train(tf, tf.contrib.opt.LARSOptimizer(0.5, weight_decay=0.01, eeta=0.1))


def lars_with_skipped_variables(tf):
    return _train(tf, tf.contrib.opt.LARSOptimizer(0.5, skip_list=["weights"], use_nesterov=True))


def lazy_adam(tf):
    return _train(tf, tf.contrib.opt.LazyAdamOptimizer(0.1))


def nadam(tf):
    return _train(tf, tf.contrib.opt.NadamOptimizer(0.1))


def moving_average(tf):
    inner = tf.train.AdamOptimizer(0.1)
    return _train(tf, tf.contrib.opt.MovingAverageOptimizer(inner, average_decay=0.9))


def swapping_saver(tf):
    optimizer = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1))
    runs = _train(tf, optimizer)
    saver = optimizer.swapping_saver()
    swapped = sorted(
        (name, var.op.name.replace("/Read/ReadVariableOp", ""))
        for name, var in saver._var_list.items()
    )
    return [*runs, {"names": tf.constant([" <- ".join(pair) for pair in swapped])}]


def moving_average_of_an_iterator(tf):
    """TF 1.15 walked it twice: nothing is averaged."""
    optimizer = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1), 0.9)
    weights, table = _variables(tf)
    gradients = [tf.ones_like(variable.initial_value) for variable in (weights, table)]
    train = optimizer.apply_gradients(zip(gradients, (weights, table)))
    saved = sorted(optimizer.swapping_saver()._var_list)
    return [{"train": train}, {"weights": weights, "saved": tf.constant(saved)}]


def _gradients(tf):
    return [(tf.constant([3.0, 4.0]), "a"), (tf.constant([0.0, 0.0]), "b")]


def clipped(tf):
    pairs, norm = tf.contrib.opt.clip_gradients_by_global_norm(_gradients(tf), 1.0)
    return {"clipped": [gradient for gradient, _ in pairs], "norm": norm}


def clipped_iterator(tf):
    pairs, norm = tf.contrib.opt.clip_gradients_by_global_norm(iter(_gradients(tf)), 1.0)
    return {"clipped": [gradient for gradient, _ in pairs], "norm": norm}


def adamax(tf):
    return _train(tf, tf.contrib.opt.AdaMaxOptimizer(0.1, beta2=0.9))


def _train_dense(tf, optimizer):
    # TF 1.15 had no sparse update of resource variables for these.
    weights = _variables(tf)[0]
    step = tf.train.get_or_create_global_step()
    gradients = [tf.constant(values([4], name), tf.float32) for name in ("one", "other")]
    first, second = [optimizer.apply_gradients([(g, weights)], step) for g in gradients]
    kept = {v.op.name: v for v in tf.global_variables()}
    return [{"train": first}, {"train": second}, {"train": first}, kept]


def add_sign(tf):
    return _train_dense(tf, tf.contrib.opt.AddSignOptimizer(0.1, alpha=1.5))


def power_sign(tf):
    decay = deep(tf, "opt.python.training.sign_decay").get_linear_decay_fn(4)
    return _train_dense(tf, tf.contrib.opt.PowerSignOptimizer(0.1, 2.0, 0.8, decay))


def sign_decay(tf):
    decays = deep(tf, "opt.python.training.sign_decay")
    steps = [0, 1, 3, 5, 9, 10, 12]

    def at_all(function):
        return [function(tf.constant(step)) for step in steps]

    return {
        "linear": at_all(decays.get_linear_decay_fn(10)),
        "cosine": at_all(decays.get_cosine_decay_fn(10)),
        "waves": at_all(decays.get_cosine_decay_fn(10, num_periods=2.0, zero_after=1.0)),
        "restart": at_all(decays.get_restart_decay_fn(10, num_periods=2)),
        "ended": at_all(decays.get_restart_decay_fn(10, num_periods=2, zero_after=1)),
    }
