"""A model that computes in bfloat16 on float32 variables, for TF 1.15's TPUEstimator and for ours.

    python tests/programs/bfloat16.py golden.json     # in an environment with TensorFlow 1.15

writes what the real one trains with use_tpu=False.
"""

import json
import sys
import tempfile

import numpy as np

STEPS, BATCH = 3, 8
RNG = np.random.RandomState(0)
FEATURES = RNG.normal(size=(STEPS * BATCH, 4)).astype(np.float32)
LABELS = (FEATURES @ [[1.0], [-2.0], [0.5], [3.0]]).astype(np.float32)


def input_fn_of(tf):
    def input_fn(params):
        data = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS))
        return data.batch(params["batch_size"], drop_remainder=True)

    return input_fn


def model_fn_of(tf, seen):
    """model_fn; `seen` gets the dtypes of what it computes with."""

    def model_fn(features, labels, mode, params):
        with tf.contrib.tpu.bfloat16_scope():
            start = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
            hidden = layer(tf, tf.cast(features, tf.bfloat16), "hidden", start)
            outputs = layer(tf, tf.nn.relu(hidden), "outputs", np.ones([3, 1], np.float32))
        seen["computed"] = outputs.dtype.name
        seen["variables"] = sorted(
            (v.op.name, v.dtype.base_dtype.name) for v in tf.global_variables()
        )
        loss = tf.losses.mean_squared_error(labels, tf.cast(outputs, tf.float32))
        optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def layer(tf, inputs, name, start):
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", initializer=tf.constant(start))
        bias = tf.get_variable("bias", [start.shape[1]], initializer=tf.zeros_initializer())
    return tf.matmul(inputs, tf.cast(kernel, inputs.dtype)) + tf.cast(bias, inputs.dtype)


def trained(tf, model_dir):
    """dtypes, and variables after the training."""
    seen = {}
    model = tf.contrib.tpu.TPUEstimator(
        model_fn_of(tf, seen),
        config=tf.contrib.tpu.RunConfig(model_dir=model_dir),
        use_tpu=False,
        train_batch_size=BATCH,
    )
    model.train(input_fn_of(tf), steps=STEPS)
    names = sorted(model.get_variable_names())
    return {**seen, "values": {n: np.asarray(model.get_variable_value(n)).tolist() for n in names}}


if __name__ == "__main__":
    import tensorflow

    with open(sys.argv[1], "w") as file:
        result = trained(tensorflow, tempfile.mkdtemp())
        json.dump({"tensorflow": tensorflow.__version__, **result}, file, indent=1)
