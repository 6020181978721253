"""A canned Estimator's first weights after a seed are TF 2.15's, whatever form its input has."""

from __future__ import annotations

import numpy as np
import pytest

import estimator2strategy.tf1 as tf

X = {"x": np.float32([[1.0, 2.0], [3.0, -1.0], [0.5, 0.2]])}
Y = np.int64([[0], [1], [1]])
INPUTS = {
    "a dataset": lambda: tf.data.Dataset.from_tensors((dict(X), Y)),
    "a dataset of slices": lambda: tf.data.Dataset.from_tensor_slices((dict(X), Y)).batch(3),
    "tensors": lambda: ({"x": tf.constant(X["x"])}, tf.constant(Y)),
}
# After one step of TensorFlow 2.15.1, with each of the inputs. TensorFlow 1.15.5 has
# [-0.0035, 0.0, 0.0385], [-0.032, 0.0, -0.0318] and [0.0, 0.0, 0.0].
BIAS = [-0.0163, 0.0, -0.0113]


@pytest.mark.parametrize("input_fn", INPUTS.values(), ids=INPUTS)
def test_first_weights_are_those_of_tf_2_15(input_fn, tmp_path):
    column = tf.feature_column.numeric_column("x", shape=(2,))
    config = tf.estimator.RunConfig(model_dir=str(tmp_path), tf_random_seed=7)
    model = tf.estimator.DNNClassifier([4], [column], config=config)
    model.train(input_fn, steps=1)
    bias = model.get_variable_value("dnn/hiddenlayer_0/bias")
    np.testing.assert_allclose(bias[:3], BIAS, atol=1e-4)
