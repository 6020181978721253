"""A small BERT that says if a sentence is in order: a transformer, warm-up, clipped gradients."""
import math

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "bert_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("num_warmup_steps", 10, "Steps in which the learning rate rises.")

VOCAB_SIZE = 30
SEQ_LENGTH = 8


def sentences(count, seed):
    rng = np.random.RandomState(seed)
    ids = np.sort(rng.randint(2, VOCAB_SIZE, [count, SEQ_LENGTH]), axis=1)
    labels = rng.randint(0, 2, [count])
    ids[labels == 1] = ids[labels == 1, ::-1]
    lengths = rng.randint(4, SEQ_LENGTH + 1, [count])
    mask = np.arange(SEQ_LENGTH) < lengths[:, None]
    features = {"input_ids": (ids * mask).astype(np.int32), "input_mask": mask.astype(np.int32)}
    return features, labels.astype(np.int32)


def input_fn(is_training, batch_size):
    data = tf.data.Dataset.from_tensor_slices(sentences(480 if is_training else 96, is_training))
    if is_training:
        data = data.repeat()
    return data.batch(batch_size)


def gelu(x):
    """Gaussian Error Linear Unit."""
    return x * 0.5 * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))


def create_initializer(initializer_range=0.02):
    return tf.truncated_normal_initializer(stddev=initializer_range)


def embed(input_ids, hidden_size):
    """Words, and the places at which they stand."""
    with tf.variable_scope("embeddings"):
        table = tf.get_variable(
            "word_embeddings", [VOCAB_SIZE, hidden_size], initializer=create_initializer())
        places = tf.get_variable(
            "position_embeddings", [SEQ_LENGTH, hidden_size], initializer=create_initializer())
        return tf.nn.embedding_lookup(table, input_ids) + tf.expand_dims(places, 0)


def attention_layer(inputs, input_mask, num_heads, size_per_head, is_training):
    """Attention of each word to all others that are no padding."""
    shape = [-1, SEQ_LENGTH, num_heads, size_per_head]
    width = num_heads * size_per_head
    query = tf.layers.dense(inputs, width, name="query", kernel_initializer=create_initializer())
    key = tf.layers.dense(inputs, width, name="key", kernel_initializer=create_initializer())
    value = tf.layers.dense(inputs, width, name="value", kernel_initializer=create_initializer())
    query, key, value = [
        tf.transpose(tf.reshape(one, shape), [0, 2, 1, 3]) for one in (query, key, value)]
    scores = tf.matmul(query, key, transpose_b=True) / math.sqrt(size_per_head)
    # Padding gets a large negative number before the softmax.
    padding = (1.0 - tf.cast(input_mask, tf.float32)) * -10000.0
    probs = tf.nn.softmax(scores + padding[:, None, None, :])
    probs = tf.layers.dropout(probs, 0.0, training=is_training)
    context = tf.transpose(tf.matmul(probs, value), [0, 2, 1, 3])
    return tf.reshape(context, [-1, SEQ_LENGTH, width])


def transformer_layer(inputs, input_mask, params, is_training):
    """A layer of the transformer."""
    hidden_size = params["hidden_size"]
    with tf.variable_scope("attention"):
        attended = attention_layer(
            inputs, input_mask, params["num_heads"], hidden_size // params["num_heads"],
            is_training)
    with tf.variable_scope("output"):
        attended = tf.layers.dense(
            attended, hidden_size, name="dense", kernel_initializer=create_initializer())
        attended = tf.contrib.layers.layer_norm(
            inputs + attended, begin_norm_axis=-1, begin_params_axis=-1, scope="LayerNorm")
    net = tf.layers.dense(
        attended, params["intermediate_size"], activation=gelu, name="intermediate",
        kernel_initializer=create_initializer())
    net = tf.layers.dense(
        net, hidden_size, name="final", kernel_initializer=create_initializer())
    return attended + net


def model_fn(features, labels, mode, params):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    with tf.variable_scope("bert"):
        net = embed(features["input_ids"], params["hidden_size"])
        for i in range(params["num_layers"]):
            with tf.variable_scope("layer_%d" % i):
                net = transformer_layer(net, features["input_mask"], params, is_training)
        first_token = tf.squeeze(net[:, 0:1, :], axis=1)
        pooled = tf.layers.dense(
            first_token, params["hidden_size"], activation=tf.tanh, name="pooler",
            kernel_initializer=create_initializer())
    logits = tf.layers.dense(pooled, 2, name="logits", kernel_initializer=create_initializer())
    predictions = {"probabilities": tf.nn.softmax(logits, axis=-1)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    log_probs = tf.nn.log_softmax(logits, axis=-1)
    one_hot_labels = tf.one_hot(labels, depth=2, dtype=tf.float32)
    loss = tf.reduce_mean(-tf.reduce_sum(one_hot_labels * log_probs, axis=-1))
    if mode == tf.estimator.ModeKeys.EVAL:
        predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
        metrics = {"eval_accuracy": tf.metrics.accuracy(labels, predicted)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.train.polynomial_decay(
        params["learning_rate"], global_step, FLAGS.train_steps, end_learning_rate=0.0)
    # Warm-up: the learning rate rises from 0.
    steps_done = tf.cast(global_step, tf.float32)
    warmup_steps = tf.constant(FLAGS.num_warmup_steps, dtype=tf.float32)
    warmup_rate = params["learning_rate"] * steps_done / warmup_steps
    is_warmup = tf.cast(steps_done < warmup_steps, tf.float32)
    learning_rate = (1.0 - is_warmup) * learning_rate + is_warmup * warmup_rate
    tf.summary.scalar("learning_rate", learning_rate)

    optimizer = tf.train.AdamOptimizer(learning_rate, epsilon=1e-6)
    tvars = tf.trainable_variables()
    grads = tf.gradients(loss, tvars)
    (grads, _) = tf.clip_by_global_norm(grads, clip_norm=1.0)
    train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=global_step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    params = {
        "hidden_size": 16, "num_heads": 2, "num_layers": 2, "intermediate_size": 32,
        "learning_rate": 5e-3,
    }
    estimator = tf.estimator.Estimator(model_fn, model_dir=FLAGS.model_dir, params=params)
    estimator.train(lambda: input_fn(True, 24), max_steps=FLAGS.train_steps)
    result = estimator.evaluate(lambda: input_fn(False, 24))
    for key in sorted(result.keys()):
        print("%s = %s" % (key, result[key]))


if __name__ == "__main__":
    tf.app.run()
