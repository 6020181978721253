"""`generator_input_fn` yields the batches of TF 1.15, those of its last feed included."""

import json

import generated
import numpy as np
import pytest
from estimator2strategy.tf1.contrib.learn.python.learn.learn_io.generator_io import (
    generator_input_fn,
)

import estimator2strategy.tf1 as tf

EXPECTED = json.loads(generated.GOLDEN.read_text())


@pytest.mark.oldest
@pytest.mark.parametrize("name", generated.CASES)
def test_batches_are_those_of_tf_1_15(name):
    assert generated.batches(tf, generator_input_fn, name) == EXPECTED[name]


def test_shuffled_examples_are_all_there():
    input_fn = generator_input_fn(generated.examples, "label", batch_size=6)
    with tf.Graph().as_default(), tf.Session() as session:
        taken = input_fn()
        seen = [session.run(taken)[0]["b"] for _ in range(2)]
    # Feeds of two examples: the last takes one of the next epoch.
    assert sorted(np.concatenate(seen)) == [0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]


def test_an_estimator_trains_on_a_generator(tmp_path):
    def model_fn(features, labels, mode):
        predicted = tf.layers.dense(features["a"], 1)
        loss = tf.losses.mean_squared_error(labels, predicted)
        optimizer = tf.train.GradientDescentOptimizer(1e-4)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def rows():
        for row in generated.examples():
            yield {"a": row["a"].astype(np.float32), "label": row["label"]}

    model = tf.estimator.Estimator(model_fn, str(tmp_path))
    model.train(generator_input_fn(rows, "label", batch_size=2, num_epochs=3), max_steps=9)
    assert model.get_variable_value("global_step") == 9
    model.train(generator_input_fn(rows, "label", batch_size=2, num_epochs=1, shuffle=False))
    assert model.get_variable_value("global_step") == 13


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="x must be generator function; got list"):
        generator_input_fn([])
    with pytest.raises(TypeError, match=r"x\(\) must be generator; got list"):
        generator_input_fn(lambda: [1])
    with pytest.raises(TypeError, match=r"x\(\) must yield dict; got int"):
        generator_input_fn(lambda: (n for n in [1]))
    with pytest.raises(TypeError, match="str or Container of str; got int"):
        generator_input_fn(generated.examples, 3)
    with pytest.raises(KeyError, match="target_key not in yielded dict"):
        generator_input_fn(generated.examples, ["nosuch"])
    with pytest.raises(NotImplementedError, match="padding and shuffling"):
        generator_input_fn(generated.sequences, pad_value=0)()


def test_input_fns_of_arrays_are_those_of_the_estimator():
    assert tf.contrib.learn.io.numpy_input_fn is tf.estimator.inputs.numpy_input_fn
    assert tf.contrib.learn.io.generator_input_fn is generator_input_fn
    from estimator2strategy.tf1.contrib.learn.python.learn.learn_io import pandas_io

    assert pandas_io.pandas_input_fn is tf.estimator.inputs.pandas_input_fn
