"""A step of a LegacyModel or an AdaptedModel that fails: the error has the user's op and line."""

from __future__ import annotations

import inspect

import pytest
import tensorflow as tf

from estimator2strategy import LegacyModel, adapt, estimator
from tests.strategies import mirrored

tf1 = tf.compat.v1
TRAINING = ("loss/xent/xent", "xent(labels")
PREDICTION = ("picked", "tf.gather(")


def model_fn(features, labels, mode):
    logits = tf.matmul(tf.reshape(features, [-1, 1]), tf1.get_variable("w", [1, 3]))
    if mode == estimator.ModeKeys.PREDICT:
        rows = tf.cast(features, tf.int32) + 7
        return estimator.EstimatorSpec(mode, tf.gather(tf.ones([2]), rows, name="picked"))
    with tf.name_scope("loss"):
        xent = tf1.nn.sparse_softmax_cross_entropy_with_logits
        loss = tf.reduce_mean(xent(labels=labels + 7, logits=logits, name="xent"))
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def batches():
    one = (tf.ones([]), tf.ones([], tf.int32))
    return tf.data.Dataset.from_tensors(one).repeat(4).batch(4, drop_remainder=True)


def check(error, name, code):
    lines, first = inspect.getsourcelines(model_fn)
    (at,) = (first + number for number, line in enumerate(lines) if code in line)
    assert f"[[node {name} (defined at {__file__}:{at}) ]]" in error.message
    assert "stack traces unavailable" not in error.message
    assert error.op.name == name


X, Y = tf.ones([4]), tf.ones([4], tf.int32)
LOOPS = {
    "fit": (lambda model: model.fit(batches(), verbose=0), TRAINING),
    "evaluate": (lambda model: model.evaluate(batches(), verbose=0), TRAINING),
    "predict": (lambda model: model.predict(batches().map(lambda x, y: x), verbose=0), PREDICTION),
    "train_on_batch": (lambda model: model.train_on_batch(X, Y), TRAINING),
    "test_on_batch": (lambda model: model.test_on_batch(X, Y), TRAINING),
    "predict_on_batch": (lambda model: model.predict_on_batch(X), PREDICTION),
    "a call": (lambda model: model(X), PREDICTION),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_in_each_loop_of_keras(loop):
    model = LegacyModel(model_fn)
    model.compile()
    run, expected = LOOPS[loop]
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        run(model)
    check(raised.value, *expected)


@pytest.mark.parametrize("loop", ["fit", "evaluate", "predict"])
def test_on_replicas(loop):
    with mirrored(2).scope():
        model = LegacyModel(model_fn)
        model.compile()
    run, expected = LOOPS[loop]
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        run(model)
    check(raised.value, *expected)


@pytest.mark.parametrize("step", ["train", "evaluate", "predict"])
def test_in_a_loop_of_ones_own(step):
    inputs = {"eval_input_fn": batches, "predict_input_fn": batches}
    model = adapt(model_fn, batches, **inputs)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        list(getattr(model, step)())
    check(raised.value, *(PREDICTION if step == "predict" else TRAINING))


def test_in_a_train_step_that_is_called_from_python():
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        adapt(model_fn, batches).train_step()
    check(raised.value, *TRAINING)


def test_in_a_train_step_that_a_function_of_ones_own_calls():
    """TensorFlow raises the error in the call of that function, with the recorded op's name."""
    model = adapt(model_fn, batches)
    own_step = tf.function(model.train_step)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised, model.naming_failures():
        own_step()
    check(raised.value, *TRAINING)
    assert "{{node loss/xent/xent}}" in raised.value.__cause__.message


def test_the_end_of_a_train_steps_input_is_no_failure_of_the_program():
    model = adapt(lambda features, labels, mode: model_fn(features, labels - 7, mode), batches)
    model.train_step()
    with pytest.raises(tf.errors.InvalidArgumentError, match="input_fn have ended") as raised:
        model.train_step()
    assert raised.value.op is None


def test_in_a_call_in_a_function_of_ones_own():
    model = LegacyModel(model_fn)
    own_step = tf.function(model, autograph=False)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised, model.naming_failures():
        own_step(X)
    check(raised.value, *PREDICTION)
