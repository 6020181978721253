"""Cases for `tf.contrib.mixed_precision`."""


def _train(tf, manager, bad_steps=()):
    """Six steps; in those of `bad_steps` the loss is infinite."""
    weights = tf.get_variable("weights", [3])
    step = tf.train.get_or_create_global_step()
    count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), trainable=False)
    with tf.control_dependencies([count.assign_add(1)]):
        bad = tf.reduce_any(tf.equal(tf.identity(count), list(bad_steps) or [0]))
    scale = tf.where(bad, float("inf"), 1.0)
    loss = tf.reduce_sum(tf.square(weights)) * scale
    optimizer = tf.contrib.mixed_precision.LossScaleOptimizer(
        tf.train.MomentumOptimizer(0.1, 0.9), manager
    )
    train = optimizer.minimize(loss, global_step=step)
    kept = {v.op.name: v for v in tf.global_variables()}
    return [{"train": train}, kept] * 6


def fixed(tf):
    return _train(tf, tf.contrib.mixed_precision.FixedLossScaleManager(128.0))


def fixed_with_bad_steps(tf):
    return _train(tf, tf.contrib.mixed_precision.FixedLossScaleManager(128.0), bad_steps=[2, 3])


def exponential(tf):
    manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(64, 2)
    return _train(tf, manager, bad_steps=[4])


def exponential_with_bad_steps(tf):
    manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(2, 3, 2, 4, 0.25)
    return _train(tf, manager, bad_steps=[1, 3, 4, 5])


def exponential_at_the_limit(tf):
    manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(3e38, 1)
    return _train(tf, manager)
