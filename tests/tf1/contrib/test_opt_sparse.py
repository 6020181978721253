"""Optimizers of `tf.contrib.opt` change the rows of a table as TF 1.15 changed them."""

import numpy as np
import pytest

import estimator2strategy.tf1 as tf

opt = tf.contrib.opt

# The table after three steps in TF 1.15, which had no sparse update of resource variables.
EXPECTED = {
    "add": [[0.75, 2.25], [3.0, 4.0], [4.5125, 6.0]],
    "power": [[0.8, 2.2], [3.0, 4.0], [4.6125, 6.0]],
    "max": [[0.829889, 2.170111], [3.0, 4.0], [4.807268, 5.928763]],
}
MAKE = {
    "add": lambda: opt.AddSignOptimizer(0.1, alpha=1.5),
    "power": lambda: opt.PowerSignOptimizer(0.1, 2.0, 0.8),
    "max": lambda: opt.AdaMaxOptimizer(0.1),
}


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", MAKE)
def test_rows_with_a_gradient_change_as_in_tf_1_15(name, use_resource):
    with tf.Graph().as_default(), tf.Session() as session:
        start = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        table = tf.get_variable("table", initializer=start, use_resource=use_resource)
        optimizer = MAKE[name]()
        first, second = [
            optimizer.apply_gradients([(tf.IndexedSlices(rows, places, [3, 2]), table)])
            for rows, places in (
                (tf.constant([[0.5, -0.5], [1.0, 0.25]]), tf.constant([0, 2])),
                (tf.constant([[-0.25, -0.5]]), tf.constant([2])),
            )
        ]
        session.run(tf.global_variables_initializer())
        for step in (first, second, first):
            session.run(step)
        found = session.run(table)
    np.testing.assert_allclose(found, EXPECTED[name], rtol=1e-5)
