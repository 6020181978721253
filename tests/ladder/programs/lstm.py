"""An LSTM that reads the values of a sensor, and says which of three motions they are of."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "lstm_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("num_units", 12, "Units of the LSTM.")

MAX_LENGTH = 10


def motions(count, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 3, [count]).astype(np.int32)
    lengths = rng.randint(4, MAX_LENGTH + 1, [count]).astype(np.int32)
    times = np.arange(MAX_LENGTH)[None, :, None] * (labels[:, None, None] + 1) * 0.5
    values = np.sin(times + rng.uniform(0, 0.5, [count, 1, 2])) + rng.normal(
        0, 0.1, [count, MAX_LENGTH, 2])
    values *= np.arange(MAX_LENGTH)[None, :, None] < lengths[:, None, None]
    return {"values": values.astype(np.float32), "length": lengths}, labels


def train_input_fn():
    data = tf.data.Dataset.from_tensor_slices(motions(480, 1))
    return data.repeat().batch(24).prefetch(1)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(motions(100, 2)).batch(24)


def model_fn(features, labels, mode, params):
    """Reads a sequence to its end, and classifies the last state."""
    inputs = tf.layers.dense(features["values"], 6, activation=tf.nn.tanh, name="inputs")
    with tf.variable_scope("reader"):
        cell = tf.nn.rnn_cell.LSTMCell(params["num_units"])
        outputs, state = tf.nn.dynamic_rnn(
            cell, inputs, sequence_length=features["length"], dtype=tf.float32)
    # The mean of what it said, beside what it remembers.
    lengths = tf.cast(features["length"], tf.float32)
    mean = tf.reduce_sum(outputs, axis=1) / tf.expand_dims(lengths, 1)
    net = tf.concat([state.h, mean], axis=1)
    net = tf.layers.dropout(net, params["dropout"], training=mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.layers.dense(net, 3, name="logits")
    predicted = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"motion": predicted, "probabilities": tf.nn.softmax(logits)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, predicted)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    optimizer = tf.train.AdamOptimizer(learning_rate=params["learning_rate"])
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_op = optimizer.apply_gradients(
        zip(gradients, variables), global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    params = {"num_units": FLAGS.num_units, "learning_rate": 0.01, "dropout": 0.0}
    run_config = tf.estimator.RunConfig(save_checkpoints_steps=25, keep_checkpoint_max=2)
    estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir, run_config, params)
    estimator.train(train_input_fn, max_steps=FLAGS.train_steps)
    results = estimator.evaluate(eval_input_fn)
    print("accuracy %.4f" % results["accuracy"])


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
