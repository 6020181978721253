"""Emulated cores refuse what a TPU would refuse of model_fn, in its words, and say where."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime.devices import emulated_strategy
from estimator2strategy.errors import UnsupportedError
from tests.engine.runtime.programs import cores_estimator, falling_on_cores, ones

tf1 = tf.compat.v1
tpu = estimator.tpu


@pytest.fixture(autouse=True)
def _two_cores(emulated_cores):
    emulated_cores(2)


def changed(change):
    """A model_fn that trains on `change(features)`."""

    def model_fn(features, labels, mode, params):
        return falling_on_cores(change(features), labels, mode, params)

    return model_fn


def trained(model_dir, change, **kwargs):
    model = cores_estimator(model_dir, changed(change), **kwargs)
    model.train(ones, steps=1)
    return model


def table(features):
    keys = tf.lookup.KeyValueTensorInitializer([0, 1], [0.0, 1.0])
    found = tf.lookup.StaticHashTable(keys, 0.0)  # the table
    return found.lookup(tf.cast(features, tf.int32))


def dataset(features):
    iterator = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(9))
    return features + tf.cast(iterator.get_next(), tf.float32)


def python(features):
    (value,) = tf1.py_func(lambda x: [x], [features], [tf.float32])  # the Python
    value.set_shape(features.shape)
    return value


def strings(features):
    return tf.strings.to_number(tf.strings.as_string(features))  # the strings


def in_a_branch(features):
    return tf.cond(features[0] > 0, lambda: strings(features), lambda: features)  # the branch


@pytest.mark.parametrize(
    ("change", "line", "op", "fix"),
    [
        (table, "# the table", "HashTableV2", "Look it up in input_fn"),
        (python, "# the Python", "PyFunc", "Do it in input_fn, or in a host_call"),
        (strings, "# the strings", "AsString", "Work on strings in input_fn"),
        (in_a_branch, "# the branch", "AsString", "Work on strings in input_fn"),
    ],
)
@pytest.mark.evidence("refusals", "cpu")
def test_what_only_a_host_has_is_refused(model_dir, change, line, op, fix):
    words = (
        r"Detected unsupported operations when trying to compile(.|\n)*"
        rf"{op} \(No registered '{op}' OpKernel for XLA_TPU_JIT devices(.|\n)*"
        rf"test_core_refusals\.py:\d+: .*{line}(.|\n)*{fix}(.|\n)*use_tpu=False"
    )
    with pytest.raises(UnsupportedError, match=words):
        trained(model_dir, change)


def test_an_iterator_of_model_fn_is_refused(model_dir):
    with pytest.raises(UnsupportedError, match=r"Iterator(.|\n)*make_one_shot(.|\n)*input_fn"):
        trained(model_dir, dataset)


@pytest.mark.parametrize("change", [table, python, strings, in_a_branch])
def test_the_host_runs_it(model_dir, change):
    model = trained(model_dir, change, use_tpu=False)
    assert model.get_variable_value("global_step") == 1


@pytest.mark.parametrize("change", [table, python, strings])
def test_a_strategy_that_stands_for_no_tpu_runs_it(model_dir, change):
    model = trained(model_dir, change, strategy=emulated_strategy(2))
    assert model.get_variable_value("global_step") == 1


@pytest.mark.parametrize("change", [table, python, strings, in_a_branch])
def test_the_host_runs_it_in_outside_compilation(model_dir, change, caplog):
    model = trained(model_dir, lambda x: tf1.tpu.outside_compilation(change, x))
    assert model.get_variable_value("global_step") == 1
    assert not [message for message in caplog.messages if "XLA" in message]


def test_a_check_is_not_refused(model_dir, caplog):
    def checked(features):
        positive = tf1.assert_greater(features, -1e3, message="too small")
        with tf.control_dependencies(
            [positive, tf1.Assert(features[0] < 1e9, ["large", features])]
        ):
            return tf.debugging.check_numerics(features, "not a number")

    model = trained(model_dir, checked)
    assert model.get_variable_value("global_step") == 1
    assert not [message for message in caplog.messages if "XLA" in message]


@pytest.mark.evidence("refusals", "cpu")
def test_strings_in_predictions_are_refused(model_dir):
    def model_fn(features, labels, mode, params):
        names = tf.fill([features.shape[0]], "a name")  # the names
        return tpu.TPUEstimatorSpec(mode, predictions={"x": features, "name": names})

    def input_fn(params):
        return tf.data.Dataset.from_tensor_slices(np.ones([8], "float32")).batch(
            params["batch_size"], drop_remainder=True
        )

    words = r"'string'> is not a supported TPU outfeed type(.|\n)*# the names(.|\n)*make strings"
    with pytest.raises(UnsupportedError, match=words):
        next(cores_estimator(model_dir, model_fn).predict(input_fn))
    host = cores_estimator(model_dir + "2", model_fn, use_tpu=False)
    assert next(host.predict(input_fn))["name"] == b"a name"


def test_strings_for_the_metrics_are_refused(model_dir):
    def model_fn(features, labels, mode, params):
        spec = falling_on_cores(features, labels, mode, params)
        names = tf.fill([features.shape[0]], "a name")
        metrics = (lambda names: {"size": tf1.metrics.mean(tf.strings.length(names))}, [names])
        return spec._replace(eval_metrics=metrics)

    with pytest.raises(UnsupportedError, match=r"TPU outfeed type(.|\n)*eval_metrics"):
        cores_estimator(model_dir, model_fn).evaluate(ones, steps=1)


def range_of_data(features):
    return tf.cast(tf.range(tf.cast(features[0], tf.int32)), tf.float32)  # the range


def shape_of_data(features):
    size = tf.cast(tf.reduce_sum(features), tf.int32)
    return tf.reshape(tf.tile(features, [2]), [size, -1])  # the shape


@pytest.mark.parametrize(
    ("change", "line"), [(range_of_data, "# the range"), (shape_of_data, "# the shape")]
)
@pytest.mark.evidence("refusals", "cpu")
def test_shapes_that_are_computed_from_data_are_refused(model_dir, change, line):
    words = (
        r"^Input \d to node .* must be a compile-time constant, made at "
        rf"(.|\n)*{line}(.|\n)*Take it from static shapes"
    )
    with pytest.raises(UnsupportedError, match=words):
        trained(model_dir, lambda features: features + tf.reduce_sum(change(features)))


@pytest.mark.parametrize(
    "change", [lambda x: tf.boolean_mask(x, x > 0), lambda x: tf.gather(x, tf.where(x > 0))]
)
def test_shapes_that_have_a_bound_are_not_refused(model_dir, change, caplog):
    model = trained(model_dir, lambda features: features + tf.reduce_sum(change(features)))
    assert model.get_variable_value("global_step") == 1
    assert not [message for message in caplog.messages if "XLA" in message]


def test_an_op_that_a_tpu_may_lack_is_told(model_dir, caplog):
    trained(model_dir, lambda x: x * tf.reduce_sum(tf.linalg.sqrtm(tf.eye(2))))
    (warning,) = [message for message in caplog.messages if "XLA has no kernel" in message]
    assert "MatrixSquareRoot" in warning
    assert "test_core_refusals.py" in warning


def printing(features):
    with tf.control_dependencies([tf.print("size", tf.size(features))]):
        return tf.identity(features)


def printing_as_of_old(features):
    return tf1.Print(features, ["size", tf.size(features)])


@pytest.mark.parametrize(
    ("change", "op", "said"),
    [(printing, "PrintV2", "size 2"), (printing_as_of_old, "Print", "[size][2]")],
)
def test_a_print_is_told_and_runs(model_dir, change, op, said, caplog, capfd):
    trained(model_dir, change)
    assert capfd.readouterr().err.count(said) == 2
    (warning,) = [message for message in caplog.messages if "XLA has no kernel" in message]
    assert f"  {op} (" in warning
