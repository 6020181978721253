"""A step that updates a variable and uses it again, in many patterns: a program of TF 1.15.

    python alternating.py 5 reference    # TensorFlow 1.15: five Sessions and an Estimator for each
    e2s run alternating.py 0             # here: an Estimator for each

Prints JSON: kind of variables -> pattern -> what a training of three steps ended with, once for
each run: the losses that the steps fetched, and the variables.
"""

import json
import sys
import tempfile

import numpy as np
import tensorflow as tf

STEPS = 3
KINDS = ("reference", "resource")
PATTERNS = {}


def pattern(words):
    """Registers a function of (x, y) that returns (loss, train_op), under a name."""

    def registered(build):
        PATTERNS[words] = build
        return build

    return registered


def scalar(name, value, trainable=True):
    return tf.get_variable(
        name, [], initializer=tf.constant_initializer(value), trainable=trainable
    )


def descend(loss, variables, rate=0.05):
    return tf.train.GradientDescentOptimizer(rate).minimize(loss, var_list=variables)


def after(*ops):
    return tf.control_dependencies(list(ops))


def line(x, y):
    """A line through the data, its weight and its loss."""
    w = scalar("w", 0.5)
    return w, tf.reduce_mean(tf.square(y - x * w))


def layer(x, units, name):
    """A dense layer whose start does not depend on a seed."""
    rows = int(x.shape[-1])
    start = np.linspace(-0.4, 0.6, rows * units).reshape(rows, units)
    kernel = tf.get_variable(name, initializer=tf.constant(start, tf.float32))
    return tf.matmul(x, kernel)


def adversaries(x, y):
    """(loss, weights) of a critic, and of a generator."""
    with tf.variable_scope("g"):
        made = layer(tf.nn.relu(layer(x, 3, "in")), 1, "out")

    def critic(value):
        with tf.variable_scope("c", reuse=tf.AUTO_REUSE):
            return layer(tf.nn.relu(layer(value, 3, "in")), 1, "out")

    real, false = critic(y), critic(made)
    critic_loss = tf.reduce_mean(tf.nn.softplus(false)) + tf.reduce_mean(tf.nn.softplus(-real))
    made_loss = tf.reduce_mean(tf.nn.softplus(-false))
    weights = [[v for v in tf.trainable_variables() if v.name[:2] == s] for s in ("c/", "g/")]
    return (critic_loss, weights[0]), (made_loss, weights[1])


# --- two optimizers ------------------------------------------------------------------------------


@pattern("two losses, `b`'s optimizer made after `a`'s step")
def _(x, y):
    a, b = scalar("a", 0.0), scalar("b", 1.0)
    loss_a = tf.losses.mean_squared_error(y, x * a)
    loss_b = tf.losses.absolute_difference(y, x * b * a)
    with after(descend(loss_a, [a])):
        return loss_a + loss_b, descend(loss_b, [b], 0.1)


@pattern("one loss, `b`'s optimizer made after `a`'s step")
def _(x, y):
    a, b = scalar("a", 0.5), scalar("b", 1.0)
    loss = tf.reduce_mean(tf.square(y - a * b * x))
    with after(descend(loss, [a])):
        return loss, descend(loss, [b])


@pattern("one loss, computed anew after `a`'s step")
def _(x, y):
    a, b = scalar("a", 0.5), scalar("b", 1.0)
    loss = tf.reduce_mean(tf.square(y - a * b * x))
    with after(descend(loss, [a])):
        return loss, descend(tf.reduce_mean(tf.square(y - a * b * x)), [b])


@pattern("one loss, both optimizers in `tf.group`")
def _(x, y):
    a, b = scalar("a", 0.5), scalar("b", 1.0)
    loss = tf.reduce_mean(tf.square(y - a * b * x))
    return loss, tf.group(descend(loss, [a]), descend(loss, [b]))


@pattern("an `assign`, then an optimizer made after it; the loss is from before")
def _(x, y):
    a, b = scalar("a", 0.0), scalar("b", 1.0)
    loss = tf.reduce_mean(tf.square(y - a * b * x))
    with after(tf.assign(a, a + 0.5)):
        return loss, descend(loss, [b])


@pattern("an `assign` that waits for the loss, then an optimizer made after it")
def _(x, y):
    a, b = scalar("a", 0.0), scalar("b", 1.0)
    loss = tf.reduce_mean(tf.square(y - a * b * x))
    with after(loss):
        moved = tf.assign_add(a, 0.5)
    with after(moved):
        return loss, descend(loss, [b])


@pattern("gradients from before `a`'s step, applied to `b` after it")
def _(x, y):
    a, b = scalar("a", 0.5), scalar("b", 1.0)
    loss = tf.reduce_mean(tf.square(y - a * b * x))
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    pairs = optimizer.compute_gradients(loss, [b])
    with after(descend(loss, [a])):
        return loss, optimizer.apply_gradients(pairs)


@pattern("Adam for `b` after Adam for `a`")
def _(x, y):
    a, b = scalar("a", 0.5), scalar("b", 1.0)
    loss = tf.reduce_mean(tf.square(y - a * b * x))
    with after(tf.train.AdamOptimizer(0.1).minimize(loss, var_list=[a])):
        return loss, tf.train.AdamOptimizer(0.1).minimize(loss, var_list=[b])


# --- adversaries ---------------------------------------------------------------------------------


@pattern("GAN: critic, then generator")
def _(x, y):
    critic, made = adversaries(x, y)
    with after(descend(*critic)):
        return critic[0], descend(*made)


@pattern("GAN: generator, then critic")
def _(x, y):
    critic, made = adversaries(x, y)
    with after(descend(*made)):
        return critic[0], descend(*critic)


@pattern("GAN: both in `tf.group`")
def _(x, y):
    critic, made = adversaries(x, y)
    return critic[0], tf.group(descend(*critic), descend(*made))


@pattern("GAN: three critic steps, then the generator")
def _(x, y):
    critic, made = adversaries(x, y)
    step = tf.no_op()
    for _ in range(3):
        with after(step):
            step = descend(*critic)
    with after(step):
        return critic[0], descend(*made)


@pattern("WGAN: weights clipped after the critic's step")
def _(x, y):
    critic, made = adversaries(x, y)
    with after(descend(*critic)):
        clips = [tf.assign(v, tf.clip_by_value(v, -0.3, 0.3)) for v in critic[1]]
    with after(*clips):
        return critic[0], descend(*made)


@pattern("WGAN: clips in one `tf.group` with the critic's step")
def _(x, y):
    critic, _ = adversaries(x, y)
    step = descend(*critic)
    return critic[0], tf.group(
        step, *[tf.assign(v, tf.clip_by_value(v, -0.3, 0.3)) for v in critic[1]]
    )


# --- target networks and averages ----------------------------------------------------------------


def target(x, y):
    w, loss = line(x, y)
    return w, scalar("target", 0.0, trainable=False), loss


@pattern("target network: copied after the step")
def _(x, y):
    w, copy, loss = target(x, y)
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, w)


@pattern("target network: the read is from before, the copy after the step")
def _(x, y):
    w, copy, loss = target(x, y)
    read = tf.identity(w)
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, read)


@pattern("target network: mixed after the step")
def _(x, y):
    w, copy, loss = target(x, y)
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, 0.9 * copy + 0.1 * w)


@pattern("target network: mixed half and half after the step")
def _(x, y):
    w, copy, loss = target(x, y)
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, 0.5 * copy + 0.5 * w)


@pattern("target network: mixed by `tf.add_n` of halves after the step")
def _(x, y):
    w, copy, loss = target(x, y)
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, tf.add_n([copy / 2.0, w / 2.0]))


@pattern("target network: mixed half and half, and a number, after the step")
def _(x, y):
    w, copy, loss = target(x, y)
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, 0.5 * copy + 0.5 * w + 0.25)


@pattern("target network: mixed after the step by a constant from before it")
def _(x, y):
    w, copy, loss = target(x, y)
    half = tf.constant(0.5)
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, half * copy + half * w)


@pattern("target network: the mixture is from before, assigned after the step")
def _(x, y):
    w, copy, loss = target(x, y)
    mixed = 0.9 * copy + 0.1 * w
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, mixed)


@pattern("target network: copied in one `tf.group` with the step")
def _(x, y):
    w, copy, loss = target(x, y)
    return loss, tf.group(descend(loss, [w]), tf.assign(copy, w))


@pattern("Q-learning: the target's value is read, then the target is moved")
def _(x, y):
    w, copy, _ = target(x, y)
    loss = tf.reduce_mean(tf.square(tf.stop_gradient(0.9 * x * copy) + y - x * w))
    with after(descend(loss, [w])):
        return loss, tf.assign(copy, 0.8 * copy + 0.2 * w)


@pattern("moving average: applied after the step")
def _(x, y):
    w, loss = line(x, y)
    average = tf.train.ExponentialMovingAverage(0.9)
    with after(descend(loss, [w])):
        return loss, average.apply([w])


@pattern("moving average: in one `tf.group` with the step")
def _(x, y):
    w, loss = line(x, y)
    average = tf.train.ExponentialMovingAverage(0.9)
    return loss, tf.group(descend(loss, [w]), average.apply([w]))


@pattern("moving average: read before its update, used after it")
def _(x, y):
    w, loss = line(x, y)
    average = tf.train.ExponentialMovingAverage(0.9)
    with after(descend(loss, [w])):
        updated = average.apply([w])
    read = tf.identity(average.average(w))
    with after(updated):
        return loss, tf.assign(scalar("seen", 0.0, False), read * 1.0)


@pattern("moving average: of the loss, divided by after its update")
def _(x, y):
    w, loss = line(x, y)
    scale = scalar("scale", 1.0, trainable=False)
    scaled = loss / scale
    with after(tf.assign(scale, 0.9 * scale + 0.1 * loss)):
        return scaled, descend(scaled, [w])


@pattern("swap of `a` and `b` by `tf.identity`")
def _(x, y):
    a, b = scalar("a", 1.0), scalar("b", 2.0)
    held = tf.identity(a)
    with after(held):
        first = tf.assign(a, b)
    with after(first):
        return tf.reduce_mean(x), tf.assign(b, held)


@pattern("swap of `a` and `b` by `a + 0`")
def _(x, y):
    a, b = scalar("a", 1.0), scalar("b", 2.0)
    held = a + 0.0
    with after(held):
        first = tf.assign(a, b)
    with after(first):
        return tf.reduce_mean(x), tf.assign(b, held)


@pattern("weights swapped for their average and back")
def _(x, y):
    w, loss = line(x, y)
    average, backup = scalar("average", 0.0, False), scalar("backup", 0.0, False)
    with after(descend(loss, [w])):
        averaged = tf.assign(average, 0.8 * average + 0.2 * w)
    with after(averaged):
        saved = tf.assign(backup, w)
    with after(saved):
        swapped = tf.assign(w, average)
    with after(swapped):
        tested = tf.reduce_mean(tf.square(y - x * w))
    with after(tested):
        return tested, tf.assign(w, backup)


@pattern("a copy by `tf.reshape`, used after the step")
def _(x, y):
    w, loss = line(x, y)
    last = scalar("last", 0.0, trainable=False)
    reshaped = tf.squeeze(tf.reshape(w, [1, 1]))
    with after(descend(loss, [w])):
        return loss, tf.assign(last, reshaped * 1.0)


# --- accumulation --------------------------------------------------------------------------------


def accumulator(x, y):
    w, loss = line(x, y)
    total = scalar("total", 0.0, trainable=False)
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    ((gradient, _),) = optimizer.compute_gradients(loss, [w])
    return w, loss, total, gradient, optimizer


@pattern("accumulation: added, then applied, then cleared")
def _(x, y):
    w, loss, total, gradient, optimizer = accumulator(x, y)
    with after(tf.assign_add(total, gradient)):
        applied = optimizer.apply_gradients([(total, w)])
    with after(applied):
        return loss, tf.assign(total, 0.0)


@pattern("accumulation: the sum is read before, applied after the addition")
def _(x, y):
    w, loss, total, gradient, optimizer = accumulator(x, y)
    read = tf.identity(total)
    with after(tf.assign_add(total, gradient)):
        return loss, optimizer.apply_gradients([(read, w)])


@pattern("accumulation: half the sum is computed before, applied after the addition")
def _(x, y):
    w, loss, total, gradient, optimizer = accumulator(x, y)
    half = total * 0.5
    with after(tf.assign_add(total, gradient)):
        return loss, optimizer.apply_gradients([(half, w)])


@pattern("accumulation: the addition's result is applied")
def _(x, y):
    w, loss, total, gradient, optimizer = accumulator(x, y)
    return loss, optimizer.apply_gradients([(tf.assign_add(total, gradient), w)])


@pattern("accumulation: applied every second step, in `tf.cond`")
def _(x, y):
    w, loss, total, gradient, optimizer = accumulator(x, y)
    counter = tf.get_variable("n", [], tf.int32, tf.zeros_initializer(), trainable=False)
    with after(tf.assign_add(total, gradient), tf.assign_add(counter, 1)):

        def apply():
            with after(optimizer.apply_gradients([(total, w)])):
                return tf.group(tf.assign(total, 0.0))

        return loss, tf.cond(tf.equal(counter % 2, 0), apply, tf.no_op)


@pattern("accumulation: a mask of the counter from before its increment")
def _(x, y):
    w, loss, total, gradient, optimizer = accumulator(x, y)
    counter = scalar("n", 0.0, trainable=False)
    mask = tf.floormod(counter, 2.0)
    with after(tf.assign_add(total, gradient), tf.assign_add(counter, 1.0)):
        applied = optimizer.apply_gradients([(total * mask, w)])
    with after(applied):
        return loss, tf.assign(total, total * (1.0 - mask))


# --- assign, followed by use ---------------------------------------------------------------------


@pattern("the result of `assign` is used")
def _(x, y):
    w, _ = line(x, y)
    scale = scalar("scale", 1.0, trainable=False)
    loss = tf.reduce_mean(tf.square(y - x * w * tf.assign(scale, scale * 2.0)))
    return loss, descend(loss, [w], 0.001)


@pattern("the variable is used after its `assign`")
def _(x, y):
    w, _ = line(x, y)
    scale = scalar("scale", 1.0, trainable=False)
    with after(tf.assign(scale, scale * 2.0)):
        loss = tf.reduce_mean(tf.square(y - x * w * scale))
    return loss, descend(loss, [w], 0.001)


@pattern("the variable is used, and assigned in one `tf.group`")
def _(x, y):
    w, _ = line(x, y)
    scale = scalar("scale", 1.0, trainable=False)
    loss = tf.reduce_mean(tf.square(y - x * w * scale))
    return loss, tf.group(tf.assign(scale, scale * 2.0), descend(loss, [w], 0.001))


@pattern("two assigns, each on the result of the one before")
def _(x, y):
    w, loss = line(x, y)
    first = tf.assign(w, w + 1.0)
    with after(first):
        second = tf.assign(w, w * 3.0)
    return loss, tf.assign(scalar("seen", 0.0, False), first + second)


@pattern("learning rate: from before its decay, the optimizer after it")
def _(x, y):
    w, loss = line(x, y)
    rate = scalar("rate", 0.1, trainable=False)
    read = tf.identity(rate)
    with after(tf.assign(rate, rate * 0.5)):
        return loss, descend(loss, [w], read)


@pattern("learning rate: computed before its decay, the optimizer after it")
def _(x, y):
    w, loss = line(x, y)
    rate = scalar("rate", 0.1, trainable=False)
    read = rate * 0.5
    with after(tf.assign(rate, rate * 0.5)):
        return loss, descend(loss, [w], read)


@pattern("learning rate: decayed in one `tf.group` with the step")
def _(x, y):
    w, loss = line(x, y)
    rate = scalar("rate", 0.1, trainable=False)
    return loss, tf.group(descend(loss, [w], rate), tf.assign(rate, rate * 0.5))


@pattern("a use written after the step, without waiting for it")
def _(x, y):
    w, loss = line(x, y)
    step = descend(loss, [w])
    return loss, tf.group(step, tf.assign(scalar("seen", 0.0, False), w + 0.0))


@pattern("weight decay after the step")
def _(x, y):
    w, loss = line(x, y)
    with after(descend(loss, [w])):
        return loss, tf.assign_sub(w, 0.1 * w)


@pattern("weight decay computed before, taken off after the step")
def _(x, y):
    w, loss = line(x, y)
    decay = 0.1 * w
    with after(descend(loss, [w])):
        return loss, tf.assign_sub(w, decay)


@pattern("extragradient: back to `tf.identity(w)`")
def _(x, y):
    w, loss = line(x, y)
    held = tf.identity(w)
    with after(held):
        half = descend(loss, [w])
    with after(half):
        (gradient,) = tf.gradients(tf.reduce_mean(tf.square(y - x * w)), [w])
        return loss, tf.assign(w, held - 0.05 * gradient)


@pattern("extragradient: back to `w + 0`")
def _(x, y):
    w, loss = line(x, y)
    held = w + 0.0
    with after(held):
        half = descend(loss, [w])
    with after(half):
        (gradient,) = tf.gradients(tf.reduce_mean(tf.square(y - x * w)), [w])
        return loss, tf.assign(w, held - 0.05 * gradient)


@pattern("lookahead: slow weights meet the fast ones")
def _(x, y):
    w, loss = line(x, y)
    slow = scalar("slow", 0.5, trainable=False)
    with after(descend(loss, [w])):
        met = tf.assign(slow, slow + 0.5 * (w - slow))
    with after(met):
        return loss, tf.assign(w, slow)


@pattern("spectral norm: the vector is assigned on the way forward")
def _(x, y):
    w, _ = line(x, y)
    u = scalar("u", 0.3, trainable=False)
    new = tf.tanh(u + w)
    sigma = new * w + u
    with after(tf.assign(u, new)):
        normed = w / (1.0 + sigma)
    loss = tf.reduce_mean(tf.square(y - x * normed * (1.0 + u)))
    return loss, descend(loss, [w])


@pattern("batch norm: statistics of two calls, then the step")
def _(x, y):
    w, _ = line(x, y)
    with tf.variable_scope("bn", reuse=tf.AUTO_REUSE):
        first = tf.layers.batch_normalization(x * w, training=True, name="n")
        second = tf.layers.batch_normalization(x * w * 2.0, training=True, name="n")
    loss = tf.reduce_mean(tf.square(y - first - second))
    with after(*tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return loss, descend(loss, [w])


# --- tables --------------------------------------------------------------------------------------


def table(x, y):
    rows = tf.get_variable("rows", initializer=tf.constant([[0.5], [1.0], [1.5]]))
    ids = tf.cast(tf.reshape(x, [-1]), tf.int32)
    found = tf.nn.embedding_lookup(rows, ids)
    return rows, ids, tf.reduce_mean(tf.square(y - found))


@pattern("table: rows looked up again after the step")
def _(x, y):
    rows, ids, loss = table(x, y)
    with after(descend(loss, [rows])):
        again = tf.nn.embedding_lookup(rows, ids)
        return loss, tf.assign(scalar("seen", 0.0, False), tf.reduce_sum(again))


@pattern("table: rows looked up in the next line, without waiting for the step")
def _(x, y):
    rows, ids, loss = table(x, y)
    step = descend(loss, [rows])
    again = tf.nn.embedding_lookup(rows, ids)
    return loss, tf.group(step, tf.assign(scalar("seen", 0.0, False), tf.reduce_sum(again)))


@pattern("table: tied weights, the second optimizer after the first")
def _(x, y):
    rows, _, loss = table(x, y)
    b = scalar("b", 1.0)
    tied = tf.reduce_mean(tf.square(y - b * tf.matmul(x, rows, transpose_b=True)))
    with after(descend(loss, [rows])):
        return loss + tied, descend(tied, [b])


# --- control flow --------------------------------------------------------------------------------


@pattern("`tf.cond` chooses which optimizer steps")
def _(x, y):
    a, b = scalar("a", 0.5), scalar("b", 1.0)
    loss = tf.reduce_mean(tf.square(y - a * b * x))
    turn = scalar("turn", 0.0, trainable=False)
    which = tf.equal(tf.floormod(turn, 2.0), 0.0)
    step = tf.cond(which, lambda: descend(loss, [a]), lambda: descend(loss, [b]))
    with after(step):
        return loss, tf.assign_add(turn, 1.0)


@pattern("`tf.cond` after a step uses what was read before it")
def _(x, y):
    w, loss = line(x, y)
    last = scalar("last", 0.0, trainable=False)
    read = tf.identity(w)
    with after(descend(loss, [w])):
        return loss, tf.cond(
            tf.greater(tf.reduce_sum(x), 0.0),
            lambda: tf.assign(last, read * 2.0),
            lambda: tf.assign(last, 0.0),
        )


@pattern("`tf.while_loop`: three additions, and the variable in its body")
def _(x, y):
    w, loss = line(x, y)
    total = scalar("total", 1.0, trainable=False)

    def body(i):
        with after(tf.assign_add(total, total)):
            return i + 1

    turned = tf.while_loop(lambda i: i < 3, body, [tf.constant(0)], parallel_iterations=1)
    with after(turned):
        return loss, descend(loss * total, [w], 0.001)


# --- runs ----------------------------------------------------------------------------------------


def data():
    return tf.data.Dataset.from_tensors(
        (np.float32([[1.0], [2.0]]), np.float32([[2.0], [4.0]]))
    ).repeat()


def rounded(values):
    return [f"{number:.6g}" for value in values for number in np.ravel(value)]


def built(words, resource, x, y):
    tf.get_variable_scope().set_use_resource(resource)
    return PATTERNS[words](x, y)


def variables():
    made = [v for v in tf.global_variables() if v.op.name != "global_step"]
    return sorted(made, key=lambda v: v.op.name)


def by_session(words, resource, runs):
    """The outcome of `runs` fresh Sessions on one graph."""
    with tf.Graph().as_default():
        x, y = tf.data.make_one_shot_iterator(data()).get_next()
        loss, train_op = built(words, resource, x, y)
        wanted = variables()
        start = tf.global_variables_initializer()
        outcomes = []
        for _ in range(runs):
            with tf.Session() as session:
                session.run(start)
                losses = [session.run([loss, train_op])[0] for _ in range(STEPS)]
                outcomes.append(rounded(losses + session.run(wanted)))
        return outcomes


class Seen(tf.train.SessionRunHook):
    """Keeps the losses of all steps, and the variables of the end."""

    def __init__(self, loss):
        self.loss, self.values = loss, []

    def begin(self):
        self.variables = variables()

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        self.values.append(run_values.results)

    def end(self, session):
        self.values += session.run(self.variables)


def by_estimator(words, resource):
    """The outcome of one training, without files, which would take most of the time."""
    hooks = []

    def model_fn(features, labels, mode):
        loss, step = built(words, resource, features, labels)
        hooks.append(Seen(loss))
        train_op = tf.group(step, tf.assign_add(tf.train.get_global_step(), 1))
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=train_op, training_hooks=hooks[-1:]
        )

    config = tf.estimator.RunConfig(
        tempfile.mkdtemp(),
        save_summary_steps=None,
        save_checkpoints_secs=None,
        log_step_count_steps=None,
    )
    tf.estimator.Estimator(model_fn, config=config).train(data, steps=STEPS)
    return rounded(hooks[-1].values)


def outcomes(sessions, kinds=KINDS, patterns=None):
    """Kind of variables -> pattern -> the outcome of each run."""
    return {
        kind: {
            words: [
                *by_session(words, kind == "resource", sessions),
                by_estimator(words, kind == "resource"),
            ]
            for words in patterns or PATTERNS
        }
        for kind in kinds
    }


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    print(json.dumps(outcomes(int(sys.argv[1]), sys.argv[2:] or KINDS), indent=1))
