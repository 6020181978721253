"""An autoencoder of small pictures."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "autoencoder_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")


def pictures(count, seed):
    rng = np.random.RandomState(seed)
    rows = rng.uniform(0, 1, [count, 8, 1])
    return (rows * rng.uniform(0, 1, [count, 1, 8])).reshape([count, 64]).astype(np.float32)


def input_fn(seed, repeat):
    images = pictures(256, seed)
    data = tf.data.Dataset.from_tensor_slices((images, images))
    return (data.repeat() if repeat else data).batch(32)


def model_fn(features, labels, mode, params):
    # The code has far fewer numbers than a picture.
    hidden = tf.layers.dense(features, params["hidden"], activation=tf.nn.relu, name="encoder")
    code = tf.layers.dense(hidden, params["code"], name="code")
    hidden = tf.layers.dense(code, params["hidden"], activation=tf.nn.relu, name="decoder")
    logits = tf.layers.dense(hidden, 64, name="pixels")
    picture = tf.sigmoid(logits)
    predictions = {"code": code, "picture": picture}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    loss = tf.losses.mean_squared_error(labels, picture)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"rmse": tf.metrics.root_mean_squared_error(labels, picture)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    optimizer = tf.train.AdamOptimizer(params["rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    estimator = tf.estimator.Estimator(
        model_fn, model_dir=FLAGS.model_dir, params={"hidden": 32, "code": 4, "rate": 0.005})
    estimator.train(lambda: input_fn(1, True), max_steps=FLAGS.train_steps)
    print(estimator.evaluate(lambda: input_fn(2, False)))
    for prediction in estimator.predict(lambda: input_fn(2, False)):
        print("first code", prediction["code"])
        break


if __name__ == "__main__":
    tf.app.run()
