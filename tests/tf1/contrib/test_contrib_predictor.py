"""`tf.contrib.predictor` predicts what the Estimator does."""

import numpy as np
import pytest

import estimator2strategy.tf1 as tf
from tests.tf1.contrib import two_outputs

FEATURES = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features["x"], 3)
    predictions = {"scores": tf.nn.softmax(logits), "best": tf.argmax(logits, 1)}
    best = tf.estimator.export.PredictOutput({"class": predictions["best"]})
    loss = train_op = None
    if mode != tf.estimator.ModeKeys.PREDICT:
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, predictions, loss, train_op, export_outputs={"best": best}
    )


def receiver():
    return tf.estimator.export.ServingInputReceiver(
        *[{"x": tf.placeholder_with_default(tf.constant(FEATURES), [None, 2])}] * 2
    )


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": FEATURES}, [0, 2]))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    model = tf.estimator.Estimator(model_fn, str(tmp_path_factory.mktemp("model")))
    return model.train(input_fn)


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    return trained.export_savedmodel(str(tmp_path_factory.mktemp("exported")), receiver).decode()


def expected(model):
    return [predicted["best"] for predicted in model.predict(input_fn)]


def test_of_an_estimator(trained):
    predictor = tf.contrib.predictor.from_estimator(trained, receiver)
    assert predictor({"x": FEATURES})["class"].tolist() == expected(trained)
    assert set(predictor.feed_tensors) == {"x"}


def test_of_a_saved_model_by_the_key_of_a_signature(trained, exported):
    predictor = tf.contrib.predictor.from_saved_model(exported, signature_def_key="best")
    assert predictor({"x": FEATURES[:1]})["class"].tolist() == expected(trained)[:1]
    assert predictor({})["class"].tolist() == expected(trained)  # the default of the placeholder


def test_of_a_saved_model_by_names_of_tensors(exported):
    of_key = tf.contrib.predictor.from_saved_model(exported)
    kernel = next(op for op in of_key.graph.get_operations() if op.type == "Softmax")
    predictor = tf.contrib.predictor.from_saved_model(
        exported,
        input_names={"in": of_key.feed_tensors["x"].name},
        output_names={"out": kernel.outputs[0].name},
    )
    np.testing.assert_allclose(predictor({"in": FEATURES})["out"].sum(1), [1, 1], rtol=1e-6)


def test_of_an_estimator_of_contrib_learn(tmp_path):
    learn = tf.contrib.learn

    def serving():
        x = tf.placeholder(tf.float32, [None, 2])
        return learn.InputFnOps({"x": x}, None, {"points": x})

    model = learn.Estimator(two_outputs.model_fn, str(tmp_path)).fit(input_fn=input_fn, steps=1)
    from_contrib = tf.contrib.predictor.from_contrib_estimator
    predictor = from_contrib(model, serving, output_alternative_key="sum")
    assert predictor({"points": FEATURES})["scores"].tolist() == [[3.0], [7.0]]
    twice = from_contrib(model, serving, output_alternative_key="twice")
    assert twice({"points": FEATURES})["double"].tolist() == [[6.0], [14.0]]


def test_a_program_has_predictors_of_its_own():
    from estimator2strategy.tf1.contrib.predictor.saved_model_predictor import SavedModelPredictor

    from estimator2strategy.tf1.contrib.predictor import predictor

    class Doubling(predictor.Predictor):
        def __init__(self):
            self._graph = tf.Graph()
            with self._graph.as_default():
                x = tf.placeholder(tf.float32, [])
                self._feed_tensors, self._fetch_tensors = {"x": x}, {"y": x * 2.0}
                self._session = tf.Session()

    assert Doubling()({"x": 2.0}) == {"y": 4.0}
    assert repr(Doubling()).startswith("Doubling with feed tensors {'x'")
    assert issubclass(SavedModelPredictor, predictor.Predictor)


def test_unknown_inputs_and_signatures_are_refused(exported):
    with pytest.raises(ValueError, match=r"unexpected keys in input_dict: .'z'.; expected .'x'."):
        tf.contrib.predictor.from_saved_model(exported)({"z": FEATURES})
    with pytest.raises(ValueError, match=r"no signature 'worst'.*; it has .*'best'"):
        tf.contrib.predictor.from_saved_model(exported, "worst")
    with pytest.raises(ValueError, match="at most one of"):
        tf.contrib.predictor.from_saved_model(exported, "best", input_names={})
