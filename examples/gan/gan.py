"""A GAN of handwritten digits for TPUEstimator: two optimizers, and a host_call for the summaries.

    python examples/gan/gan.py --out=/tmp/gan

Trains the same model on one emulated core and on four, with the same global batch, and draws both.
Exits with 1 when their losses differ by more than 0.01.
"""

import argparse
import os
import sys

import numpy as np
from sklearn.datasets import load_digits

import estimator2strategy as e2s

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import shared

CORES = 4
BATCH = 64
NOISE = 16
ITERATIONS = 10
TOLERANCE = 0.01


def generator(noise):
    with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
        net = tf.layers.dense(noise, 64, activation=tf.nn.leaky_relu, name="hidden1")
        net = tf.layers.dense(net, 128, activation=tf.nn.leaky_relu, name="hidden2")
        return tf.layers.dense(net, 64, activation=tf.nn.sigmoid, name="image")


def discriminator(images):
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        net = tf.layers.dense(images, 128, activation=tf.nn.leaky_relu, name="hidden1")
        net = tf.layers.dense(net, 64, activation=tf.nn.leaky_relu, name="hidden2")
        return tf.layers.dense(net, 1, name="logit")


def cross_entropy(logits, real):
    labels = tf.ones_like(logits) * (0.9 if real else 0.0)
    return tf.losses.sigmoid_cross_entropy(labels, logits, loss_collection=None)


def optimizer():
    return tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(5e-4, beta1=0.5))


def model_fn(features, labels, mode, params):
    images = generator(features["noise"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"image": images})
    on_real, on_made = discriminator(features["real"]), discriminator(images)
    judge_loss = cross_entropy(on_real, True) + cross_entropy(on_made, False)
    maker_loss = cross_entropy(on_made, True)
    step = tf.train.get_global_step()
    judge_op = optimizer().minimize(
        judge_loss, var_list=tf.trainable_variables("discriminator"), global_step=step
    )
    maker_op = optimizer().minimize(maker_loss, var_list=tf.trainable_variables("generator"))

    def host_call(step, judge, maker):
        writer = tf.compat.v2.summary.create_file_writer(params["events"])
        with writer.as_default():
            return [
                tf.compat.v2.summary.write(name, tf.reduce_mean(loss), step=step[0])
                for name, loss in (("judge", judge), ("maker", maker))
            ]

    tensors = [tf.reshape(tensor, [1]) for tensor in (step, judge_loss, maker_loss)]
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode,
        loss=judge_loss + maker_loss,
        train_op=tf.group(judge_op, maker_op),
        host_call=(host_call, tensors),
    )


def input_fn(params):
    images = (load_digits().data / 16).astype(np.float32)
    noise = np.random.RandomState(1).randn(len(images), NOISE).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices({"real": images, "noise": noise})
    data = data.map(lambda features: (features, tf.zeros([])))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def noise_input_fn(params):
    noise = np.random.RandomState(2).randn(32, NOISE).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices({"noise": noise}).batch(params["batch_size"])


def train(args, cores):
    """Returns what the host_call wrote, and 32 images."""
    model_dir = os.path.join(args.out, f"{cores}_cores")
    tf.gfile.MakeDirs(args.out)
    if tf.gfile.Exists(model_dir):
        tf.gfile.DeleteRecursively(model_dir)
    config = tf.estimator.tpu.RunConfig(
        model_dir=model_dir,
        tf_random_seed=1,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=ITERATIONS, num_shards=cores,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V1,
        ),
    )  # fmt: skip
    events = os.path.join(model_dir, "gan")
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        params={"events": events},
        use_tpu=True,
        train_batch_size=BATCH,
        predict_batch_size=32,
    )
    estimator.train(input_fn, max_steps=args.train_steps)
    images = [digit["image"].reshape(8, 8) for digit in estimator.predict(noise_input_fn)]
    return {name: written(events, name) for name in ("judge", "maker")}, images


def written(folder, tag):
    """Steps and values of what `tf.compat.v2.summary.write` wrote."""
    found = {}
    for path in tf.gfile.Glob(os.path.join(folder, "events*")):
        for event in tf.train.summary_iterator(path):
            for value in event.summary.value:
                if value.tag == tag:
                    found[event.step] = float(tf.make_ndarray(value.tensor))
    steps = sorted(found)
    return np.array(steps), np.array([found[step] for step in steps])


def first(one, several, points=60):
    """The first curves of both, which is as far as a GAN's can be told apart."""
    return {
        "1 core": tuple(part[:points] for part in one),
        f"{CORES} cores": tuple(part[:points] for part in several),
    }


def draw_images(images):
    def draw(axes):
        framed = [np.pad(image, 1) for image in images]
        rows = [np.hstack(framed[i : i + 8]) for i in (0, 8, 16, 24)]
        axes.imshow(np.vstack(rows), cmap="gray_r")
        axes.set_title(f"made on {CORES} cores", fontsize=10)
        axes.axis("off")

    return draw


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="gan", help="where all goes")
    parser.add_argument("--train_steps", type=int, default=3000, help="a multiple of 10")
    args = parser.parse_args(argv)
    one, _ = train(args, 1)
    several, images = train(args, CORES)
    # GANs are chaotic: rounding grows. The first steps must agree, the rest look alike.
    early = {name: tuple(part[:10] for part in one[name]) for name in one}
    difference = max(shared.largest_difference(early[name], several[name]) for name in one)
    print(
        f"Largest difference of the losses, first {len(early['judge'][0])} points: {difference:.1e}"
    )
    shared.pictures(
        os.path.join(args.out, "gan.png"),
        "A GAN on one emulated core and on four, the same global batch",
        [
            shared.curves(first(one["judge"], several["judge"]), title="judge"),
            shared.curves(first(one["maker"], several["maker"]), title="maker"),
            draw_images(images),
        ],
    )
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    e2s.emulate_tpu(num_cores=CORES)  # before TensorFlow starts its devices
import estimator2strategy.tf1 as tf

if __name__ == "__main__":
    sys.exit(main())
