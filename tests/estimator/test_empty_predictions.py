"""A spec without predictions: predict names it, and a plain export takes it as TF 1.15 did."""

from __future__ import annotations

import pytest
import tensorflow as tf

import estimator2strategy.tf1 as legacy
from estimator2strategy import adapt, estimator
from estimator2strategy.estimator import export, tpu

tf1 = tf.compat.v1
EMPTY = r"(?s)^predictions .*model_fn \(.*\) returned for predict are an empty dict.*given: {}"


def input_fn(params=None):
    """An input without an end: predict would not end either."""
    return tf.data.Dataset.from_tensors({"x": [[1.0], [2.0]]}).repeat()


def receiver_fn():
    x = tf1.placeholder(tf.float32, [None, 1])
    return export.ServingInputReceiver({"x": x}, {"x": x})


def model_returning(predictions, spec=estimator.EstimatorSpec):
    def model_fn(features, labels, mode, params):
        return spec(mode, predictions=predictions)

    return model_fn


@pytest.fixture
def model_dir(tmp_path):
    """A folder with a checkpoint of a model without variables."""
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(tf1.train.get_or_create_global_step().initializer)
        tf1.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    return str(tmp_path)


def plain(predictions, model_dir):
    return estimator.Estimator(model_returning(predictions), model_dir, params={})


def of_tf115(predictions, model_dir):
    return legacy.estimator.Estimator(model_returning(predictions), model_dir, params={})


def tpu_estimator(predictions, model_dir, **options):
    model_fn = model_returning(predictions, tpu.TPUEstimatorSpec)
    sizes = {"train_batch_size": 2, "predict_batch_size": 2}
    return tpu.TPUEstimator(model_fn, model_dir, tpu.RunConfig(), use_tpu=False, **sizes, **options)


MODELS = pytest.mark.parametrize("make", [plain, of_tf115, tpu_estimator])


@MODELS
@pytest.mark.parametrize("options", [{}, {"yield_single_examples": False}, {"predict_keys": ["a"]}])
def test_an_empty_dict_of_predictions_is_named(make, options, model_dir):
    with pytest.raises(ValueError, match=EMPTY):
        next(make({}, model_dir).predict(input_fn, **options))


@MODELS
@pytest.mark.parametrize("single", [True, False])
def test_missing_predictions_are_not_blamed_on_the_labels(make, single, model_dir):
    with pytest.raises(ValueError, match=r"^Missing predictions"):
        next(make(None, model_dir).predict(input_fn, yield_single_examples=single))
    with pytest.raises(TypeError, match=r"^predictions\[a\] must be Tensor, given: None"):
        next(make({"a": None}, model_dir).predict(input_fn, yield_single_examples=single))


@pytest.mark.parametrize("make", [plain, of_tf115])
def test_an_export_without_predictions_has_a_signature_without_outputs(make, model_dir, tmp_path):
    exported = make({}, model_dir).export_saved_model(str(tmp_path / "export"), receiver_fn)
    with tf.Graph().as_default(), tf1.Session() as session:
        graph = tf1.saved_model.load(session, ["serve"], tf.compat.as_str(exported))
    assert not graph.signature_def["serving_default"].outputs


def test_an_export_for_tpus_without_predictions_is_refused(model_dir, tmp_path):
    with pytest.raises(ValueError, match=r"nothing to compute on a TPU, given: {}"):
        tpu_estimator({}, model_dir).export_saved_model(str(tmp_path / "tpu"), receiver_fn)
    on_cpu = tpu_estimator({}, model_dir, export_to_tpu=False)
    assert on_cpu.export_saved_model(str(tmp_path / "cpu"), receiver_fn)


def test_a_model_for_ones_own_loop_names_the_empty_dict(model_dir):
    def train_input_fn():
        return tf.data.Dataset.from_tensors((tf.ones([2, 1]), tf.ones([2, 1]))).repeat()

    def model_fn(features, labels, mode):
        w = tf1.get_variable("w", [1, 1])
        loss = tf.reduce_mean(features @ w) if mode != "infer" else None
        return estimator.EstimatorSpec(mode, {}, loss, tf1.train.get_global_step().assign_add(1))

    model = adapt(model_fn, train_input_fn, predict_input_fn=train_input_fn)
    with pytest.raises(ValueError, match=EMPTY):
        next(model.predict())
