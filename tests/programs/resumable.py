"""A program whose every step depends on all before it: shuffled input, dropout, Adam.

    python resumable.py MODEL_DIR LOSSES MAX_STEPS [key=value ...]

Appends `step loss` to the file LOSSES after each step: the number of steps before it, and the loss
as a hexadecimal float. Runs with the real Estimator too, where TensorFlow has it.
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
if hasattr(tf1, "estimator"):
    estimator = tf1.estimator  # TensorFlow 2.15
else:
    from estimator2strategy import estimator

OPTIONS = {"pause": 0.0, "save": 5, "summaries": 7, "seed": 11, "look": 1, "files": 1}
# Save beside training; checkpoints that are kept; an optimizer with slots, or one without.
OPTIONS.update({"async": 0, "keep": 5, "slots": 1})
FEATURES = np.random.RandomState(7).randn(40, 6).astype("float32")


def input_fn():
    labels = FEATURES.sum(axis=1, keepdims=True) * OPTIONS["files"]
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, labels))
    return dataset.shuffle(20, seed=3).repeat().batch(4).prefetch(2)


def model_fn(features, labels, mode):
    kernel = tf1.get_variable("kernel", [6, 16])
    x = tf.nn.relu(tf.matmul(features, kernel))
    x = tf1.nn.dropout(x, rate=0.3)
    x = x + tf1.random_normal([16], stddev=0.01, seed=5)
    out = tf.matmul(x, tf1.get_variable("out", [16, 1]))
    loss = tf.reduce_mean(tf.square(out - labels))
    tf1.summary.histogram("x", x)
    step = tf1.train.get_global_step()
    kind = tf1.train.AdamOptimizer if OPTIONS["slots"] else tf1.train.GradientDescentOptimizer
    train_op = kind(0.01).minimize(loss, step)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class Losses(tf1.train.SessionRunHook):
    """Writes down the loss of each step that it sees."""

    def __init__(self, path):
        self._path = path

    def before_run(self, run_context):
        loss = tf1.get_collection(tf1.GraphKeys.LOSSES)[-1]
        return tf1.train.SessionRunArgs([tf1.train.get_global_step(), loss])

    def after_run(self, run_context, run_values):
        step, loss = run_values.results
        with open(self._path, "a") as file:
            file.write(f"{int(step)} {float(loss).hex()}\n")
        time.sleep(OPTIONS["pause"])


def main(model_dir, losses, max_steps, *options):
    for option in options:
        name, value = option.split("=")
        OPTIONS[name] = float(value) if "." in value else int(value)
    config = estimator.RunConfig(
        model_dir=model_dir,
        tf_random_seed=OPTIONS["seed"],
        save_checkpoints_steps=OPTIONS["save"],
        save_summary_steps=OPTIONS["summaries"],
        keep_checkpoint_max=OPTIONS["keep"],
    )
    more = {}
    if OPTIONS["async"]:
        more["options"] = estimator.TrainingOptions(async_checkpoints=True)
    hooks = [Losses(losses)] if OPTIONS["look"] else []
    estimator.Estimator(model_fn, config=config, **more).train(
        input_fn, max_steps=int(max_steps), hooks=hooks
    )


if __name__ == "__main__":
    tf1.logging.set_verbosity(tf1.logging.INFO)
    main(*sys.argv[1:])
