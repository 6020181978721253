"""adanet's Estimator: two candidates for each of two iterations, of which it keeps the better."""

import json
import tempfile

import adanet
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
random = np.random.RandomState(0)
rows = random.rand(64, 2).astype(np.float32)
targets = rows.sum(1, keepdims=True)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, targets)).batch(16).repeat()


def once():
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, targets)).batch(16)


class Network(adanet.subnetwork.Builder):
    """A network of a number of hidden layers."""

    def __init__(self, depth):
        self._depth = depth

    @property
    def name(self):
        return f"depth_{self._depth}"

    def build_subnetwork(
        self, features, logits_dimension, training, iteration_step, summary, previous_ensemble=None
    ):
        hidden = features["x"]
        for _ in range(self._depth):
            hidden = v1.layers.dense(hidden, 4, tf.tanh, kernel_initializer=start(hidden, 4))
        kernel = start(hidden, logits_dimension)
        logits = v1.layers.dense(hidden, logits_dimension, kernel_initializer=kernel)
        return adanet.Subnetwork(hidden, logits, float(self._depth), {"depth": self._depth})

    def build_subnetwork_train_op(
        self, subnetwork, loss, var_list, labels, iteration_step, summary, previous_ensemble
    ):
        return v1.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=var_list)


class Generator(adanet.subnetwork.Generator):
    """Proposes networks of as many layers as the iteration has, and of one more."""

    def generate_candidates(
        self,
        previous_ensemble,
        iteration_number,
        previous_ensemble_reports,
        all_reports,
        config,
    ):
        return [Network(iteration_number), Network(iteration_number + 1)]


def start(inputs, units):
    values = np.linspace(-1, 1, inputs.shape[1] * units)
    return v1.constant_initializer(values.astype(np.float32))


estimator = adanet.Estimator(
    head=tf.estimator.RegressionHead(),
    subnetwork_generator=Generator(),
    max_iteration_steps=8,
    evaluator=adanet.Evaluator(once, steps=4),
    config=tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp()),
)
estimator.train(input_fn, max_steps=16)
results = estimator.evaluate(once)
results = {key: value for key, value in results.items() if not isinstance(value, bytes)}
results["predicted"] = np.mean([each["predictions"] for each in estimator.predict(once)])
print("RESULT", json.dumps({k: float(v) for k, v in sorted(results.items())}))
