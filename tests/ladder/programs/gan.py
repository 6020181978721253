"""A GAN: one network draws curves, another tells them from real ones."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "gan_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")

POINTS = 12


def curves(count, seed):
    rng = np.random.RandomState(seed)
    places = np.linspace(0, 3, POINTS) + rng.uniform(0, 1, [count, 1])
    real = rng.uniform(0.5, 1, [count, 1]) * np.sin(places)
    return {
        "noise": rng.normal(size=[count, 4]).astype(np.float32),
        "real": real.astype(np.float32),
    }


def input_fn(seed, repeat):
    data = tf.data.Dataset.from_tensor_slices((curves(320, seed), np.zeros([320], np.float32)))
    return (data.repeat() if repeat else data).batch(32)


def generator(noise, units):
    """Draws curves."""
    with tf.variable_scope("generator"):
        net = tf.layers.dense(noise, units, activation=tf.nn.leaky_relu, name="hidden")
        return tf.layers.dense(net, POINTS, activation=tf.nn.tanh, name="points")


def discriminator(points, units):
    """Tells real curves from drawn ones."""
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        net = tf.layers.dense(points, units, activation=tf.nn.leaky_relu, name="hidden")
        return tf.layers.dense(net, 1, name="logits")


def model_fn(features, labels, mode, params):
    drawn = generator(features["noise"], params["units"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"curve": drawn})

    real_logits = discriminator(features["real"], params["units"])
    drawn_logits = discriminator(drawn, params["units"])
    real_loss = tf.losses.sigmoid_cross_entropy(tf.ones_like(real_logits), real_logits)
    drawn_loss = tf.losses.sigmoid_cross_entropy(tf.zeros_like(drawn_logits), drawn_logits)
    discriminator_loss = real_loss + drawn_loss
    generator_loss = tf.losses.sigmoid_cross_entropy(tf.ones_like(drawn_logits), drawn_logits)
    loss = discriminator_loss + generator_loss
    if mode == tf.estimator.ModeKeys.EVAL:
        is_found = tf.cast(drawn_logits < 0, tf.float32)
        metrics = {"found": tf.metrics.mean(is_found)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    discriminator_optimizer = tf.train.AdamOptimizer(params["rate"], beta1=0.5)
    generator_optimizer = tf.train.AdamOptimizer(2 * params["rate"], beta1=0.5)
    discriminator_gradients = discriminator_optimizer.compute_gradients(
        discriminator_loss, var_list=tf.trainable_variables("discriminator"))
    generator_gradients = generator_optimizer.compute_gradients(
        generator_loss, var_list=tf.trainable_variables("generator"))
    # Both move from where they are, not the one after the other.
    gradients = [gradient for gradient, _ in discriminator_gradients + generator_gradients]
    with tf.control_dependencies(gradients):
        train_op = tf.group(
            discriminator_optimizer.apply_gradients(discriminator_gradients),
            generator_optimizer.apply_gradients(
                generator_gradients, global_step=tf.train.get_global_step()))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    estimator = tf.estimator.Estimator(
        model_fn, model_dir=FLAGS.model_dir, params={"units": 16, "rate": 0.002})
    estimator.train(lambda: input_fn(1, True), max_steps=FLAGS.train_steps)
    print(estimator.evaluate(lambda: input_fn(2, False)))


if __name__ == "__main__":
    tf.app.run()
