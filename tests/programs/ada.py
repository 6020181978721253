"""adanet grows an ensemble of small networks in two iterations, and evaluates it.

    python ada.py MODEL_DIR            # TensorFlow 2.7.4, adanet 0.9.0
    e2s run ada.py MODEL_DIR           # here

Prints JSON: the losses of steps, what is evaluated after each iteration, what the ensemble became
and what it predicts. tests/goldens/ada.json is its output there: adanet 0.9.0 cannot be imported
by TF 1.15 nor by 2.15. (On TF 1.15.5 adanet 0.8.0 gives the same, but for two losses at the start
of the second iteration, where it does not report those of the ensemble before.)
"""

import json
import sys

import adanet
import numpy as np
import tensorflow.compat.v1 as tf

ITERATION_STEPS = 8
X = np.random.RandomState(0).randn(32, 3).astype(np.float32)
Y = np.abs(X).sum(1, keepdims=True)


def weights(seed):
    """First weights that do not depend on how TensorFlow draws them."""
    draw = np.random.RandomState(seed)

    def initializer(shape, dtype=None, partition_info=None):
        return tf.constant(0.5 * draw.randn(*map(int, shape)), dtype or tf.float32)

    return initializer


class Dense(adanet.subnetwork.Builder):
    def __init__(self, width):
        self._width = width

    @property
    def name(self):
        return f"dense_{self._width}"

    def build_subnetwork(
        self,
        features,
        logits_dimension,
        training,
        iteration_step,
        summary,
        previous_ensemble=None,
    ):
        hidden = tf.layers.dense(
            features["x"], self._width, tf.nn.relu, kernel_initializer=weights(self._width)
        )
        logits = tf.layers.dense(hidden, logits_dimension, kernel_initializer=weights(1))
        with tf.name_scope(""):
            summary.scalar("width", self._width)
        return adanet.Subnetwork(
            last_layer=hidden, logits=logits, complexity=float(self._width), shared={}
        )

    def build_subnetwork_train_op(
        self, subnetwork, loss, var_list, labels, iteration_step, summary, previous_ensemble
    ):
        return tf.train.AdamOptimizer(0.05).minimize(loss, var_list=var_list)

    def build_mixture_weights_train_op(
        self, loss, var_list, logits, labels, iteration_step, summary
    ):
        return tf.train.GradientDescentOptimizer(0.01).minimize(loss, var_list=var_list)


class Wider(adanet.subnetwork.Generator):
    """In each iteration a network like the last one, and a wider one."""

    def generate_candidates(
        self, previous_ensemble, iteration_number, previous_ensemble_reports, all_reports
    ):
        return [Dense(2 + iteration_number), Dense(6 + iteration_number)]


class Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.found = []

    def before_run(self, run_context):
        (loss,) = tf.get_collection(tf.GraphKeys.LOSSES)[-1:]
        return tf.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        self.found.append(float(run_values.results))


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(8)


def main(argv):
    model = adanet.Estimator(
        head=tf.estimator.RegressionHead(),
        subnetwork_generator=Wider(),
        max_iteration_steps=ITERATION_STEPS,
        ensemblers=[
            adanet.ensemble.ComplexityRegularizedEnsembler(
                optimizer=lambda: tf.train.GradientDescentOptimizer(0.01),
                warm_start_mixture_weights=True,
                model_dir=argv[1],
                adanet_lambda=0.01,
            )
        ],
        config=tf.estimator.RunConfig(argv[1], tf_random_seed=1),
    )
    losses, found = Losses(), {"evaluated": []}
    for iteration in (1, 2):
        model.train(input_fn, max_steps=iteration * ITERATION_STEPS, hooks=[losses])
        evaluated = model.evaluate(input_fn, steps=4)
        architecture = evaluated.pop("architecture/adanet/ensembles")
        found["evaluated"].append({key: float(value) for key, value in sorted(evaluated.items())})
    found["losses"] = losses.found
    found["ensemble"] = tf.Summary.FromString(architecture).value[0].tensor.string_val[0].decode()
    predicted = model.predict(tf.estimator.inputs.numpy_input_fn({"x": X[:4]}, shuffle=False))
    found["predicted"] = [float(one["predictions"][0]) for one in predicted]
    print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    tf.app.run(main, sys.argv)
