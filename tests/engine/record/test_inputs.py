"""Every form of input that Estimators took reaches model_fn as it is."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.hooks import LossRecorder

tf1 = tf.compat.v1
DATA = np.arange(12, dtype="float32").reshape(6, 2)


def summing_model_fn(features, labels, mode):
    """Loss: the sum of all numbers in the features; trains nothing."""
    parts = [
        tf.cast(part, tf.float32) for part in tf.nest.flatten(features, expand_composites=True)
    ]
    loss = tf.add_n([tf.reduce_sum(part) for part in parts])
    if labels is not None:
        loss += sum(tf.reduce_sum(tf.cast(part, tf.float32)) for part in tf.nest.flatten(labels))
    train_op = tf1.assign_add(tf1.train.get_global_step(), 1)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, predictions=loss)


def losses(model_dir, input_fn, steps=3, **kwargs):
    recorder = LossRecorder()
    model = estimator.Estimator(summing_model_fn, model_dir, **kwargs)
    model.train(input_fn, hooks=[recorder], steps=steps)
    return recorder.losses


def rows():
    return tf.data.Dataset.from_tensor_slices(DATA)


def one_shot():
    """Tensors of an iterator, with ops after get_next."""
    x = tf1.data.make_one_shot_iterator(rows().batch(2)).get_next()
    return {"x": x * 10, "row": x[0]}, x[:, 0]


def initializable():
    iterator = tf1.data.make_initializable_iterator(rows().batch(2))
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next() + 1, None


def nested():
    return rows().map(lambda x: ({"a": (x, x[0]), "b": {"c": x}}, {"y": x[1]})).batch(2)


def sparse():
    return rows().batch(2).map(tf.sparse.from_dense)


def with_a_table():
    words = tf.data.Dataset.from_tensor_slices(["a", "b", "a", "c"]).batch(2)
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=0
    )
    return words.map(table.lookup)


def constants():
    return tf.constant([[1.0, 2.0]]), tf.constant([3.0])


def python_numbers():
    return {"x": tf.constant([1.0]), "y": 2.0}


CASES = {
    "dataset": (lambda: rows().batch(2), [6, 22, 38]),
    "one shot iterator with ops after it": (one_shot, [63, 239, 415]),
    "initializable iterator": (lambda: initializable()[0], [10, 26, 42]),
    "nested features and labels": (nested, [18, 66, 114]),
    "sparse features": (sparse, None),
    "a lookup table in the pipeline": (with_a_table, [3, 1]),
    "constants never end": (constants, [6, 6, 6]),
    "python numbers beside tensors": (python_numbers, [3, 3, 3]),
}


@pytest.mark.parametrize("name", CASES)
def test_input_reaches_model_fn(model_dir, name):
    input_fn, expected = CASES[name]
    seen = losses(model_dir, input_fn)
    if expected is None:
        # The sum over the values, the indices and the shape of three sparse batches.
        expected = [1 + 2 + 3 + (1 + 1 + 1 + 1) + 4, 4 + 5 + 6 + 7 + 4 + 4, 8 + 9 + 10 + 11 + 4 + 4]
    assert seen == expected


def test_mode_params_and_config_are_passed_where_they_are_declared(model_dir):
    seen = {}

    def asks_for_all(mode, params, config):
        seen.update(mode=mode, params=params, config=config)
        return rows().batch(2)

    def model_fn(features, labels, mode, params):
        del params
        return summing_model_fn(features, labels, mode)

    model = estimator.Estimator(model_fn, model_dir, params={"n": 1})
    model.train(asks_for_all, steps=1)
    assert seen["mode"] == "train"
    assert seen["params"] == {"n": 1}
    assert seen["config"].model_dir == model_dir


def test_functions_are_called_once_however_often_the_step_runs(model_dir):
    calls = []

    def counted_input_fn():
        calls.append("input_fn")
        return rows().repeat().batch(2)

    def counted_model_fn(features, labels, mode):
        calls.append("model_fn")
        return summing_model_fn(features, labels, mode)

    model = estimator.Estimator(counted_model_fn, model_dir)
    model.train(counted_input_fn, steps=300)
    assert calls == ["input_fn", "model_fn"]


def test_random_ops_of_the_input_are_drawn_anew_each_step(model_dir):
    seen = losses(model_dir, lambda: tf.random.uniform([4]), steps=5)
    assert len(set(seen)) == 5


def test_training_stops_where_the_input_ends(model_dir):
    model = estimator.Estimator(summing_model_fn, model_dir)
    model.train(lambda: rows().batch(2), steps=100)
    assert model.get_variable_value("global_step") == 3


@pytest.mark.parametrize("cores", [2, 4])
def test_uneven_predictions_on_cores_are_complete_and_in_order(model_dir, emulated_cores, cores):
    emulated_cores(cores)

    def model_fn(features, mode, params):
        del params
        weight = tf1.get_variable("w", [], initializer=tf1.ones_initializer())
        return estimator.tpu.TPUEstimatorSpec(mode, predictions={"x": features * weight})

    for pipeline in (2, 3):  # PER_HOST_V1, PER_HOST_V2
        config = estimator.tpu.RunConfig(
            model_dir=f"{model_dir}{pipeline}",
            tpu_config=estimator.tpu.TPUConfig(per_host_input_for_training=pipeline),
        )
        model = estimator.tpu.TPUEstimator(
            model_fn, config=config, train_batch_size=8, predict_batch_size=8
        )
        numbers = np.arange(1, 22, dtype="float32")

        def input_fn(params, numbers=numbers):
            return tf.data.Dataset.from_tensor_slices(numbers).batch(params["batch_size"])

        assert [p["x"] for p in model.predict(input_fn)] == numbers.tolist()
