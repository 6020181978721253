"""`ScipyOptimizerInterface` finds the minima that its documentation in TF 1.15 had."""

import numpy as np
import pytest

import estimator2strategy.tf1 as tf

opt = tf.contrib.opt


def minimized(make, **arguments):
    """The variable [7, 7] after the square of its norm was made as small as possible."""
    pytest.importorskip("scipy")
    with tf.Graph().as_default(), tf.Session() as session:
        vector = tf.Variable([7.0, 7.0], name="vector")
        other = tf.Variable(tf.ones([2, 2]), name="other")
        loss = tf.reduce_sum(tf.square(vector)) + tf.reduce_sum(tf.square(other - 3.0))
        optimizer = make(loss, vector)
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session, **arguments)
        found = session.run([vector, other])
    np.testing.assert_allclose(found[1], np.full([2, 2], 3.0), atol=1e-4)
    return found[0]


def test_without_constraints():
    found = minimized(lambda loss, _: opt.ScipyOptimizerInterface(loss, options={"maxiter": 100}))
    np.testing.assert_allclose(found, [0, 0], atol=1e-4)


def test_with_bounds():
    def bounded(loss, vector):
        return opt.ScipyOptimizerInterface(loss, var_to_bounds={vector: ([1, 2], np.inf)})

    np.testing.assert_allclose(minimized(bounded), [1, 2], atol=1e-4)


def test_with_equalities_and_inequalities():
    def constrained(loss, vector):
        return opt.ScipyOptimizerInterface(
            loss,
            equalities=[vector[1] - 1.0],
            inequalities=[vector[0] - 1.0],
            method="SLSQP",
        )

    np.testing.assert_allclose(minimized(constrained), [1, 1], atol=1e-4)


def test_callbacks_see_each_step_and_each_loss():
    losses, steps, fetches = [], [], []

    def watched(loss, _):
        fetches.append(loss)
        return opt.ScipyOptimizerInterface(loss)

    minimized(watched, fetches=fetches, loss_callback=losses.append, step_callback=steps.append)
    assert losses[0] == pytest.approx(98 + 16)
    assert losses[-1] == pytest.approx(0, abs=1e-5)
    assert [step.shape for step in steps] == [(6,)] * len(steps)


def test_a_program_has_a_method_of_its_own():
    class Halving(opt.ExternalOptimizerInterface):
        def _minimize(self, initial_val, loss_grad_func, **kwargs):
            assert kwargs["optimizer_kwargs"] == {"times": 2}
            loss, gradient = loss_grad_func(initial_val)
            assert loss == pytest.approx(98.0)
            return initial_val - gradient / 4

    with tf.Graph().as_default(), tf.Session() as session:
        vector = tf.Variable([7.0, 7.0])
        optimizer = Halving(tf.reduce_sum(tf.square(vector)), times=2)
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session)
        assert session.run(vector).tolist() == [3.5, 3.5]


def test_arguments_that_are_set_are_refused():
    pytest.importorskip("scipy")
    with tf.Graph().as_default(), tf.Session() as session:
        vector = tf.Variable([7.0, 7.0])
        session.run(tf.global_variables_initializer())
        loss = tf.reduce_sum(tf.square(vector))
        with pytest.raises(ValueError, match="using the var_to_bounds argument"):
            opt.ScipyOptimizerInterface(loss, bounds=[(0, 1)]).minimize(session)
        with pytest.raises(ValueError, match="'jac' is set automatically"):
            opt.ScipyOptimizerInterface(loss, jac=False).minimize(session)
        with pytest.raises(NotImplementedError, match="implement the _minimize"):
            opt.ExternalOptimizerInterface(loss).minimize(session)
