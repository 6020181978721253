"""Each mistake is an error that says what, where in the user's code, and what to do instead.

It comes before a step runs, and nothing in the model folder is lost.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.errors import DeviceError, RecordingError, UnsupportedError
from estimator2strategy.tf1 import layers

tf1 = tf.compat.v1
ModeKeys = estimator.ModeKeys
HERE = __file__


def input_fn():
    x = np.ones([8, 2], "float32")
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(4, drop_remainder=True)


def input_fn_of_params(params):
    del params
    return input_fn()


def model_fn(features, labels, mode):
    weight = tf1.get_variable("weight", [2, 1], initializer=tf1.ones_initializer())
    predictions = tf.matmul(features, weight)
    if mode == ModeKeys.PREDICT:
        return estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.reduce_mean(tf.square(predictions - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def tpu_model_fn(features, labels, mode, params):
    del params
    weight = tf1.get_variable("weight", [2, 1], initializer=tf1.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, weight) - labels))
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def tpu_estimator(model_dir, **kwargs):
    kwargs = {"model_fn": tpu_model_fn, "train_batch_size": 8, **kwargs}
    return estimator.tpu.TPUEstimator(config=estimator.tpu.RunConfig(model_dir=model_dir), **kwargs)


@pytest.mark.oldest
def test_model_fn_without_features_names_its_place():
    def no_features(labels):
        return labels

    with pytest.raises(ValueError, match=rf"no_features \({HERE}:\d+\).*features"):
        estimator.Estimator(no_features)


def test_model_fn_with_an_argument_nobody_passes_names_it():
    def odd(features, shoe_size):
        return features, shoe_size

    with pytest.raises(ValueError, match=rf"odd \({HERE}:\d+\).*shoe_size"):
        estimator.Estimator(odd)


def test_model_fn_that_returns_no_spec_names_its_place(model_dir):
    def returns_a_loss(features, labels):
        return tf.reduce_mean(features - labels)

    with pytest.raises(ValueError, match=rf"EstimatorSpec.*returns_a_loss \({HERE}:\d+\)"):
        estimator.Estimator(returns_a_loss, model_dir).train(input_fn, steps=1)


@pytest.mark.parametrize(
    ("mode", "missing"),
    [(ModeKeys.TRAIN, "train_op"), (ModeKeys.EVAL, "loss"), (ModeKeys.PREDICT, "predictions")],
)
def test_a_spec_without_what_its_mode_needs_is_refused(mode, missing):
    with pytest.raises(ValueError, match=f"Missing {missing}"):
        estimator.EstimatorSpec(mode)


def test_a_training_spec_without_loss_is_refused():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Missing loss"):
        estimator.EstimatorSpec(ModeKeys.TRAIN, train_op=tf.no_op())


@pytest.mark.parametrize("key", ["batch_size", "context"])
def test_reserved_params_are_refused(model_dir, key):
    with pytest.raises(ValueError, match="are reserved keys"):
        tpu_estimator(model_dir, params={key: 1})


def test_a_batch_that_cores_cannot_share_is_refused(model_dir, emulated_cores):
    emulated_cores(4)
    with pytest.raises(ValueError, match=r"train batch size 6 must be divisible.*4"):
        tpu_estimator(model_dir, train_batch_size=6).train(input_fn_of_params, steps=1)


@pytest.mark.oldest
def test_use_tpu_without_a_tpu_names_emulate_tpu(model_dir, emulated_cores):
    emulated_cores(0)
    with pytest.raises(DeviceError, match=r"no TPU[\s\S]*emulate_tpu\(num_cores=8\)"):
        tpu_estimator(model_dir).train(input_fn_of_params, steps=1)


def test_a_dynamic_batch_on_cores_names_drop_remainder(model_dir, emulated_cores):
    emulated_cores(2)

    def dynamic(params):
        x = np.ones([8, 2], "float32")
        return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(params["batch_size"])

    with pytest.raises(ValueError, match=r"static shape[\s\S]*drop_remainder"):
        tpu_estimator(model_dir).train(dynamic, steps=1)


def test_inputs_that_differ_between_cores_are_refused(model_dir, emulated_cores):
    emulated_cores(2)
    pipeline = estimator.tpu.InputPipelineConfig.PER_SHARD_V1

    def changing(params):
        size = 2 + params["context"].current_input_fn_deployment()[1]
        return tf.ones([params["batch_size"], size]), tf.ones([params["batch_size"], 1])

    config = estimator.tpu.RunConfig(
        model_dir=model_dir,
        tpu_config=estimator.tpu.TPUConfig(per_host_input_for_training=pipeline),
    )
    model = estimator.tpu.TPUEstimator(tpu_model_fn, config=config, train_batch_size=8)
    with pytest.raises(RecordingError, match=r"core 1[\s\S]*\(4, 3\)[\s\S]*core 0[\s\S]*\(4, 2\)"):
        model.train(changing, steps=1)


def test_an_optimizer_that_does_not_sum_over_cores_is_refused(model_dir, emulated_cores):
    emulated_cores(2)

    def not_sharded(features, labels, mode, params):
        del params
        return model_fn(features, labels, mode)

    with pytest.raises(ValueError, match="CrossShardOptimizer must be used"):
        tpu_estimator(model_dir, model_fn=not_sharded).train(input_fn_of_params, steps=1)


@pytest.mark.oldest
def test_queue_runners_name_the_line_and_the_replacement(model_dir):
    def queues():
        name = tf1.train.string_input_producer(["a"]).dequeue()
        return name, name

    config = estimator.RunConfig(
        train_distribute=tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    )
    with pytest.raises(UnsupportedError, match=rf"{HERE}:\d+[\s\S]*TFRecordDataset"):
        estimator.Estimator(model_fn, model_dir, config).train(queues, steps=1)


def test_a_three_part_input_is_refused(model_dir):
    with pytest.raises(ValueError, match="len 2 tuple"):
        estimator.Estimator(model_fn, model_dir).train(lambda: (1, 2, 3), steps=1)


@pytest.mark.oldest
def test_a_model_that_predicts_from_labels_is_told_that_there_are_none(model_dir):
    def of_labels(features, labels, mode):
        return model_fn(features, labels["y"], mode)

    with pytest.raises(RecordingError, match=r"None in predict and.*subscriptable") as raised:
        next(estimator.Estimator(of_labels, model_dir=model_dir).predict(lambda: input_fn()))
    assert "input_fn returned" not in str(raised.value)
    assert "before labels are used" in str(raised.value)


def test_an_unknown_size_in_the_message_of_a_layer_is_not_taken_for_the_labels(model_dir):
    def dense(features, labels, mode):
        return estimator.EstimatorSpec(mode, predictions=layers.dense(features, 1))

    def vectors():
        return tf.data.Dataset.from_tensor_slices(np.ones(8, "float32")).batch(4)

    with pytest.raises(ValueError, match=r"expected min_ndim=2.*None") as raised:
        next(estimator.Estimator(dense, model_dir=model_dir).predict(vectors))
    assert "labels" not in str(raised.value)


def test_a_nan_loss_stops_at_the_very_step(model_dir):
    def nan_in_the_third_step(features, labels, mode):
        spec = model_fn(features, labels, mode)
        step = tf1.train.get_global_step()
        loss = tf.where(tf.equal(step, 2), float("nan"), spec.loss)
        return spec._replace(loss=loss)

    config = estimator.RunConfig(model_dir=model_dir, save_checkpoints_steps=2)
    model = estimator.Estimator(nan_in_the_third_step, config=config)
    with pytest.raises(tf1.train.NanLossDuringTrainingError):
        model.train(input_fn, steps=50)
    assert model.get_variable_value("global_step") == 2  # the last good checkpoint is kept


@pytest.mark.oldest
def test_a_checkpoint_that_does_not_fit_lists_every_difference(model_dir):
    estimator.Estimator(model_fn, model_dir).train(input_fn, steps=1)

    def renamed(features, labels, mode):
        tf1.get_variable("bias", [1])
        tf1.get_variable("weight", [2, 1])
        with tf1.variable_scope("other"):
            return model_fn(features, labels, mode)

    def reshaped(features, labels, mode):
        tf1.get_variable("weight", [3, 1])
        with tf1.variable_scope("other"):
            return model_fn(features, labels, mode)

    with pytest.raises(tf.errors.NotFoundError) as missing:
        estimator.Estimator(renamed, model_dir).train(input_fn, steps=1)
    assert "missing in the checkpoint: bias float32 [1]" in str(missing.value)
    assert "missing in the checkpoint: other/weight float32 [2, 1]" in str(missing.value)

    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.NotFoundError)) as differs:
        estimator.Estimator(reshaped, model_dir).train(input_fn, steps=1)
    assert "weight is float32 [2, 1] in the checkpoint, float32 [3, 1] in the model" in str(
        differs.value
    )
    # Nothing is lost.
    assert estimator.Estimator(model_fn, model_dir).get_variable_value("global_step") == 1


def test_model_fn_may_run_a_session_on_its_graph(model_dir):
    def runs_a_session(features, labels, mode):
        with tf1.Session() as session:
            assert session.run(tf.constant(2) * 3) == 6
        return model_fn(features, labels, mode)

    estimator.Estimator(runs_a_session, model_dir).train(input_fn, steps=1)


def test_an_error_in_model_fn_is_the_users_own(model_dir):
    def broken(features):
        raise KeyError("the user's")

    with pytest.raises(KeyError, match="the user's") as error:
        estimator.Estimator(broken, model_dir).train(lambda: tf.ones([1]), steps=1)
    assert error.traceback[-1].path.samefile(HERE)


def test_labels_that_are_missing_are_told_once_by_a_model_fn_in_a_model_fn(model_dir):
    plain = estimator.LinearRegressor([tf.feature_column.numeric_column("x")], model_dir)
    added = estimator.add_metrics(plain, lambda labels: {"n": tf1.metrics.mean(labels)})
    with pytest.raises(ValueError, match="cannot use the labels") as raised:
        added.train(lambda: tf.data.Dataset.from_tensors({"x": [[1.0]]}), steps=1)
    assert str(raised.value).count("cannot use the labels that input_fn returned") == 1
    assert str(raised.value).count("\n  At ") == 1
