"""A program of the TF 1.x kind: flags, tf.app.run, module-level state, helpers beside it."""

import importlib
import json
import sys

import helper
import migrated
import tensorflow as tf
import tensorflow.compat.v1 as tf_v1
import tensorflow.contrib.tpu as contrib_tpu
from tensorflow.contrib.tpu.python.tpu import tpu_config
from tensorflow.python.estimator import estimator as estimator_lib
from tensorflow_estimator.python.estimator import model_fn as model_fn_lib

FLAGS = tf.flags.FLAGS
tf.flags.DEFINE_integer("units", 4, "Width of the layer.")
tf.flags.DEFINE_bool("fail", False, "End with an error.")

STEP = tf.train.get_or_create_global_step()


def observed(argv):
    images = tf.placeholder(tf.float32, [None, 3], name="images")
    hidden = tf.layers.dense(images, FLAGS.units, use_bias=False)
    doubled = tf.data.Dataset.range(3).map(lambda x: helper.double(x))
    batch = doubled.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        shape = session.run(hidden, {images: [[1.0, 2.0, 3.0]]}).shape
        values = [int(session.run(batch)) for _ in range(3)]
    variables = [v.op.name for v in tf.trainable_variables()]
    mean = tf.reduce_mean(images, reduction_indices=[1], keep_dims=True)
    observations = {
        "argv": argv,
        "name": __name__,
        "version": tf.__version__,
        "same": [tf_v1 is tf, contrib_tpu is tf.contrib.tpu, importlib is sys.modules["importlib"]],
        "imported": importlib.import_module("tensorflow.contrib.tpu").TPUConfig.__name__,
        "deep": [
            tpu_config.TPUConfig is tf.estimator.tpu.TPUConfig,
            estimator_lib.Estimator is tf.estimator.Estimator,
            model_fn_lib.EstimatorSpec is tf.estimator.EstimatorSpec,
        ],
        "dimension": hidden.shape[1].value,
        "helper dimension": helper.last_dimension(mean),
        "eager": tf.executing_eagerly(),
        "run": [list(shape), values],
        "variables": variables,
        "is variable": isinstance(tf.trainable_variables()[0], tf.Variable),
        "migrated": migrated.observed(),
        "step": STEP.name,
    }
    tf.reset_default_graph()
    observations["left after reset"] = len(tf.global_variables())
    return observations


def main(argv):
    print(json.dumps(observed(argv)))
    if FLAGS.fail:
        raise RuntimeError("the program's own error")


if __name__ == "__main__":
    tf.app.run()
