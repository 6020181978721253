"""Prints and assertions of model_fn, on the host and on emulated cores."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.engine.runtime.programs import cores_estimator, falling_on_cores, ones

tf1 = tf.compat.v1


@pytest.fixture(params=[0, 2], ids=["host", "cores"])
def cores(request, emulated_cores):
    emulated_cores(request.param)
    return request.param


def trained(model_dir, cores, change, steps=2):
    """Trains on features that `change` has handed on."""

    def model_fn(features, labels, mode, params):
        return falling_on_cores(change(features), labels, mode, params)

    model = cores_estimator(model_dir, model_fn, use_tpu=bool(cores))
    model.train(ones, steps=steps)
    return model


def by_tf1_print(features):
    return tf1.Print(features, [tf.size(features)], message="size ")


def by_tf_print(features):
    with tf.control_dependencies([tf.print("size", tf.size(features))]):
        return tf.identity(features)


@pytest.mark.parametrize(
    ("change", "line"), [(by_tf1_print, "size [{}]"), (by_tf_print, "size {}")]
)
def test_each_core_prints_at_each_step(model_dir, cores, capfd, change, line):
    trained(model_dir, cores, change)
    size = 2 if cores else 4
    assert capfd.readouterr().err.count(line.format(size)) == 2 * max(cores, 1)


def asserting(at_most):
    def change(features):
        with tf.control_dependencies([tf.debugging.assert_less_equal(features, at_most)]):
            return tf.identity(features)

    return change


def test_assertion_that_fails_ends_training(model_dir, cores):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"assert|Condition x <= y"):
        trained(model_dir, cores, asserting(0.5))


def test_assertion_that_holds_is_no_matter(model_dir, cores):
    assert trained(model_dir, cores, asserting(1.0)).get_variable_value("weight") == -2.0
