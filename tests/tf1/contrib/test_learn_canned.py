"""Canned Estimators of `tf.contrib.learn`: their numbers are those of TF 1.15."""

from __future__ import annotations

import json

import numpy as np
import pytest

import estimator2strategy.tf1 as tf
from estimator2strategy.errors import UnsupportedError
from tests.tf1.contrib import canned

learn, layers = tf.contrib.learn, tf.contrib.layers


def assert_equal(found, name):
    expected = json.loads(canned.GOLDENS.read_text())[name]
    assert found["variables"].keys() == expected["variables"].keys()
    for variable, values in expected["variables"].items():
        assert found["variables"][variable] == pytest.approx(values, abs=2e-4), variable
    assert found["results"] == pytest.approx(expected["results"], abs=2e-4)
    assert found["predictions"] == pytest.approx(expected["predictions"], abs=2e-4)


@pytest.mark.parametrize("name", canned.PROGRAMS)
def test_a_program_trains_evaluates_and_predicts_as_in_tf_1_15(name):
    assert_equal(canned.run(tf, canned.PROGRAMS[name]), name)


def test_arrays_are_fed_as_in_tf_1_15():
    assert_equal(canned.run_on_arrays(tf), "arrays")


def test_labels_may_be_the_names_of_classes(model_dir):
    column = layers.real_valued_column("x", 3)
    keys = ["ant", "bee", "cow", "dog"]
    model = learn.LinearClassifier([column], model_dir, n_classes=4, label_keys=keys)
    labels = [keys[i % 4] for i in range(canned.SIZE)]
    model.fit(input_fn=canned.inputs(tf, labels), steps=2)
    results = model.evaluate(input_fn=canned.inputs(tf, labels), steps=1)
    classes = [c.decode() for c in model.predict_classes(input_fn=canned.inputs(tf, labels))]
    assert set(classes) <= set(keys)
    assert results["accuracy"] == pytest.approx(np.mean(np.equal(classes, labels)))


def test_two_optimizers_count_two_steps_as_in_tf_1_15(model_dir):
    dense, sparse = canned.columns(tf)
    model = learn.DNNLinearCombinedClassifier(model_dir, 2, None, sparse, None, False, dense)
    with pytest.raises(ValueError, match="dnn_hidden_units must be defined"):
        model.fit(input_fn=canned.inputs(tf, canned.OF_TWO), steps=1)
    expected = json.loads(canned.GOLDENS.read_text())["both_of_two"]
    assert expected["variables"]["global_step"] == [6.0]  # 5 were asked for


def test_a_head_makes_the_ops_of_a_model_fn(model_dir):
    def model_fn(features, labels, mode):
        head = learn.multi_class_head(2, head_name="sick", enable_centered_bias=True)

        def train_op_fn(loss):
            optimizer = tf.train.GradientDescentOptimizer(0.1)
            return optimizer.minimize(loss, tf.train.get_global_step())

        return head.create_model_fn_ops(
            features, mode, labels, train_op_fn, logits_input=features["x"]
        )

    model = learn.Estimator(model_fn, model_dir)
    input_fn = canned.inputs(tf, canned.OF_TWO)
    results = model.fit(input_fn=input_fn, steps=1).evaluate(input_fn=input_fn, steps=1)
    assert results["loss/sick"] == pytest.approx(results["loss"])
    assert "sick/centered_bias_weight" in model.get_variable_names()
    assert "precision/positive_threshold_0.500000_mean/sick" in results


def test_an_estimator_that_is_not_fitted_says_so(model_dir):
    model = learn.LinearRegressor([layers.real_valued_column("x", 3)], model_dir)
    input_fn = canned.inputs(tf, canned.REALS)
    with pytest.raises(learn.NotFittedError, match="Couldn't find trained model"):
        model.evaluate(input_fn=input_fn, steps=1)
    with pytest.raises(learn.NotFittedError):
        list(model.predict(input_fn=input_fn))


def test_what_contradicts_itself_is_refused(model_dir):
    column = layers.real_valued_column("x", 3)
    model = learn.LinearRegressor([column], model_dir)
    with pytest.raises(ValueError, match="both input_fn and x or y"):
        model.fit(canned.NUMBERS, canned.REALS, input_fn=canned.inputs(tf, canned.REALS))
    with pytest.raises(ValueError, match="Either x or input_fn"):
        model.fit(steps=1)
    with pytest.raises(UnsupportedError, match="feed_fn"):
        model.evaluate(feed_fn=dict)
    with pytest.raises(UnsupportedError, match="iterator of examples"):
        model.fit(iter([1.0]), iter([1.0]))
    with pytest.raises(UnsupportedError, match="_joint_weight"):
        learn.LinearClassifier([column], _joint_weight=True)
    with pytest.raises(ValueError, match="n_classes must be > 1"):
        learn.DNNClassifier([1], [column], n_classes=1)
    with pytest.raises(ValueError, match="label_keys is not supported for n_classes=2"):
        learn.DNNClassifier([1], [column], label_keys=["a", "b"])


def test_a_dict_of_arrays_has_a_column_for_each():
    found = learn.infer_real_valued_columns_from_input({"a": canned.NUMBERS, "b": [1.0, 2.0]})
    assert [(column.name, column.dimension) for column in found] == [("a", 3), ("b", 1)]


@pytest.mark.parametrize(
    ("make", "method", "outputs"),
    [
        (learn.LinearClassifier, "classify", {"classes", "scores"}),
        (learn.LinearRegressor, "regress", {"outputs"}),
    ],
)
def test_an_export_has_the_signatures_of_tf_1_15(model_dir, tmp_path, make, method, outputs):
    column = layers.real_valued_column("x", 3)
    model = make([column], model_dir)
    model.fit(input_fn=canned.inputs(tf, canned.OF_TWO), steps=1)
    spec = layers.create_feature_spec_for_parsing([column])
    folder = model.export_savedmodel(
        str(tmp_path / "exports"), learn.build_parsing_serving_input_fn(spec)
    )
    with tf.Session(graph=tf.Graph()) as session:
        signatures = tf.saved_model.loader.load(session, ["serve"], folder.decode()).signature_def
    assert set(signatures) == {"serving_default", "default_input_alternative:None"}
    for signature in signatures.values():
        assert signature.method_name == f"tensorflow/serving/{method}"
        assert set(signature.outputs) == outputs


def test_an_export_of_features_is_a_prediction(model_dir, tmp_path):
    model = learn.LinearClassifier([layers.real_valued_column("x", 3)], model_dir)
    model.fit(input_fn=canned.inputs(tf, canned.OF_TWO), steps=1)

    def serving_input_fn():
        x = tf.placeholder(tf.float32, [None, 3])
        return learn.InputFnOps({"x": x}, None, {"x": x})

    folder = model.export_savedmodel(str(tmp_path / "exports"), serving_input_fn)
    served = tf.contrib.predictor.from_saved_model(folder.decode())({"x": canned.NUMBERS})
    expected = list(model.predict_proba(x={"x": canned.NUMBERS}))
    np.testing.assert_allclose(served["probabilities"], expected, atol=1e-6)
