"""A text CNN: convolutions of three widths over the embeddings of words."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "text_cnn_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")

VOCABULARY = 40


def sentences(count, seed):
    rng = np.random.RandomState(seed)
    words = rng.randint(0, VOCABULARY, [count, 12]).astype(np.int64)
    labels = (np.sum(words < 8, axis=1) > 2).astype(np.float32)
    return {"words": words}, labels


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices(sentences(400, 1)).repeat().batch(20)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(sentences(90, 2)).batch(20)


def model_fn(features, labels, mode):
    embeddings = tf.get_variable("embeddings", [VOCABULARY, 8])
    net = tf.nn.embedding_lookup(embeddings, features["words"])
    narrow = tf.layers.conv1d(net, 4, 2, activation=tf.nn.relu, name="width_2")
    middle = tf.layers.conv1d(net, 4, 3, activation=tf.nn.relu, name="width_3")
    wide = tf.layers.conv1d(net, 4, 4, activation=tf.nn.relu, name="width_4")
    pooled = [tf.reduce_max(one, axis=1) for one in (narrow, middle, wide)]
    net = tf.concat(pooled, axis=1)
    with tf.variable_scope("head"):
        logits = tf.squeeze(tf.layers.dense(net, 1, name="logits"), axis=1)
    probability = tf.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"probability": probability})
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        guesses = tf.round(probability)
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, guesses)})
    rate = tf.train.polynomial_decay(0.02, tf.train.get_global_step(), 100, 0.001)
    train_op = tf.train.AdamOptimizer(rate).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir)
    estimator.train(train_input_fn, max_steps=FLAGS.train_steps)
    print(estimator.evaluate(eval_input_fn))


if __name__ == "__main__":
    tf.app.run()
