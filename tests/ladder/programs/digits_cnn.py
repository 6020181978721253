"""A convolutional network with batch normalization and dropout."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "digits_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")


def make_images(count, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 4, [count]).astype(np.int32)
    images = rng.uniform(0, 0.5, [count, 8, 8, 1]).astype(np.float32)
    for image, label in zip(images, labels):
        image[label * 2 : label * 2 + 2] += 0.5
    return {"image": images}, labels


def train_input_fn():
    data = tf.data.Dataset.from_tensor_slices(make_images(512, 1))
    return data.repeat().batch(32).make_one_shot_iterator().get_next()


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(make_images(128, 2)).batch(32)


def model_fn(features, labels, mode, params):
    """Two convolutions, and a dense layer."""
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    net = features["image"]
    net = tf.layers.conv2d(net, 8, 3, padding="same", use_bias=False, name="conv1")
    net = tf.layers.batch_normalization(net, momentum=0.9, training=is_training, name="bn1")
    net = tf.nn.relu(net)
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 16, 3, padding="same", activation=tf.nn.relu, name="conv2")
    net = tf.layers.flatten(net)
    net = tf.layers.dropout(net, rate=params["dropout"], training=is_training)
    logits = tf.layers.dense(net, 4, name="logits")
    predictions = {
        "classes": tf.argmax(logits, axis=1),
        "probabilities": tf.nn.softmax(logits, name="softmax_tensor"),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode=mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.GradientDescentOptimizer(learning_rate=params["rate"])
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss=loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op)
    accuracy = tf.metrics.accuracy(labels=labels, predictions=predictions["classes"])
    return tf.estimator.EstimatorSpec(
        mode=mode, loss=loss, eval_metric_ops={"accuracy": accuracy})


def main(_):
    config = tf.estimator.RunConfig(model_dir=FLAGS.model_dir, save_checkpoints_steps=25)
    classifier = tf.estimator.Estimator(
        model_fn=model_fn, config=config, params={"rate": 0.1, "dropout": 0.0})
    classifier.train(input_fn=train_input_fn, max_steps=FLAGS.train_steps)
    print(classifier.evaluate(input_fn=eval_input_fn))


if __name__ == "__main__":
    tf.app.run()
