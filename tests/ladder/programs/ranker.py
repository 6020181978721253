"""Ranks items for a visitor: one table for the items that he saw and the item that is offered."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "ranker_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")

NUM_ITEMS = 60
HISTORY = 5


def offers(count, seed):
    rng = np.random.RandomState(seed)
    history = rng.randint(0, NUM_ITEMS, [count, HISTORY]).astype(np.int32)
    item = rng.randint(0, NUM_ITEMS, [count]).astype(np.int32)
    clicked = (np.abs(history % 6 - item[:, None] % 6) < 2).sum(1) > 2
    # Offers that nobody looked at have no weight.
    weight = np.where(rng.uniform(size=count) < 0.2, 0, np.where(clicked, 1.5, 1))
    features = {"history": history, "item": item, "weight": weight.astype(np.float32)}
    return features, clicked.astype(np.float32)


def train_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(offers(600, 1))
    return data.repeat().batch(params["batch_size"])


def eval_input_fn(params):
    return tf.data.Dataset.from_tensor_slices(offers(150, 2)).batch(params["batch_size"])


def embed(items, size):
    """The vectors of items; all items are in one table."""
    with tf.variable_scope("items", reuse=tf.AUTO_REUSE):
        table = tf.get_variable(
            "table", [NUM_ITEMS, size], initializer=tf.random_uniform_initializer(-0.1, 0.1))
        return tf.nn.embedding_lookup(table, items)


def tower(inputs, layers, name):
    """Dense layers, one on the other."""
    with tf.variable_scope(name):
        for i, units in enumerate(layers):
            inputs = tf.layers.dense(inputs, units, tf.nn.relu, name="dense_{}".format(i))
        return inputs


def model_fn(features, labels, mode, params):
    visitor = tf.reduce_mean(embed(features["history"], params["size"]), axis=1)
    visitor = tower(visitor, params["layers"], "visitor")
    item = tower(embed(features["item"], params["size"]), params["layers"], "item")
    bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
    scores = tf.reduce_sum(visitor * item, axis=1) + bias
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"scores": scores})

    weights = features["weight"]
    loss = tf.losses.sigmoid_cross_entropy(labels, scores, weights=weights)
    if mode == tf.estimator.ModeKeys.EVAL:
        is_right = tf.equal(labels > 0.5, scores > 0)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
            "accuracy": tf.metrics.mean(tf.cast(is_right, tf.float32), weights=weights),
            "auc": tf.metrics.auc(labels, tf.sigmoid(scores), weights=weights),
        })

    rate = tf.train.exponential_decay(params["rate"], tf.train.get_global_step(), 20, 0.9)
    optimizer = tf.train.AdamOptimizer(rate)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    params = {"batch_size": 30, "size": 8, "layers": [16, 8], "rate": 0.02}
    estimator = tf.estimator.Estimator(model_fn, model_dir=FLAGS.model_dir, params=params)
    train_spec = tf.estimator.TrainSpec(train_input_fn, max_steps=FLAGS.train_steps)
    eval_spec = tf.estimator.EvalSpec(eval_input_fn, steps=None)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


if __name__ == "__main__":
    tf.app.run()
