"""Two heads on one body: what a visitor does, and how long he stays."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "multi_head_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")


def visits(count, seed):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, [count, 5]).astype(np.float32)
    action = (x[:, 0] > 0.2).astype(np.int64) + (x[:, 1] > 0)
    minutes = np.abs(x[:, 2] + x[:, 3])[:, None].astype(np.float32)
    return {"x": x}, {"action": action, "minutes": minutes}


def input_fn(params, seed=1):
    data = tf.data.Dataset.from_tensor_slices(visits(300, seed))
    return data.repeat().batch(params["batch_size"])


def eval_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(visits(100, 2))
    return data.batch(params["batch_size"])


def model_fn(features, labels, mode, params):
    """A body of two layers, and two heads."""
    regularizer = tf.contrib.layers.l2_regularizer(0.001)
    with tf.variable_scope("body"):
        net = tf.layers.dense(
            features["x"], 16, activation=tf.nn.tanh, kernel_regularizer=regularizer, name="first")
        net = tf.layers.dense(
            net, 8, activation=tf.nn.tanh, kernel_regularizer=regularizer, name="second")
    action_logits = tf.layers.dense(net, 3, name="action")
    minutes = tf.layers.dense(net, 1, name="minutes")
    predictions = {"action": tf.argmax(action_logits, 1), "minutes": minutes}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    # Each head has its own loss.
    action_loss = tf.losses.sparse_softmax_cross_entropy(labels["action"], action_logits)
    minutes_loss = tf.losses.mean_squared_error(labels["minutes"], minutes)
    regularization = tf.losses.get_regularization_loss()
    loss = action_loss + params["weight"] * minutes_loss + regularization
    tf.summary.scalar("action_loss", action_loss)
    tf.summary.scalar("minutes_loss", minutes_loss)
    metrics = {
        "accuracy": tf.metrics.accuracy(labels["action"], predictions["action"]),
        "rmse": tf.metrics.root_mean_squared_error(labels["minutes"], minutes),
    }
    train_op = tf.train.AdagradOptimizer(params["rate"]).minimize(
        loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def main(_):
    params = {"batch_size": 25, "rate": 0.1, "weight": 0.5}
    estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir, params=params)
    estimator.train(input_fn, steps=FLAGS.train_steps)
    print(estimator.evaluate(eval_input_fn))


if __name__ == "__main__":
    tf.app.run()
