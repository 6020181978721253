"""`tf.contrib.estimator`: Estimators and optimizers with something added."""

import pytest

import estimator2strategy.tf1 as tf

contrib = tf.contrib.estimator


def model_fn(features, labels, mode):
    """Predicts the feature plus a weight, which falls by its clipped gradient."""
    weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
    predictions = {"sum": features["x"] + weight}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions)
    loss = tf.reduce_mean(4.0 * predictions["sum"])
    optimizer = contrib.clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 0.5)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op)


def input_fn():
    features = {"x": [1.0, 2.0], "id": [7, 8]}
    return tf.data.Dataset.from_tensor_slices((features, [1.0, 1.0])).batch(2)


@pytest.fixture
def program(model_dir):
    return tf.estimator.Estimator(model_fn, model_dir)


def test_clip_gradients_by_norm_clips_all_together(program):
    program.train(input_fn)
    # The gradient, 4, is clipped to 0.5.
    assert program.get_variable_value("weight") == 0.5


def test_add_metrics_adds_to_an_evaluation(program):
    program.train(input_fn)
    more = contrib.add_metrics(
        program,
        lambda features, predictions, labels: {
            "error": tf.metrics.mean_absolute_error(labels, predictions["sum"]),
            "x": tf.metrics.mean(features["x"]),
        },
    )
    result = more.evaluate(input_fn)
    # Predictions 1.5 and 2.5.
    assert (result["error"], result["x"], result["loss"]) == (1.0, 1.5, 8.0)


def test_add_metrics_refuses_other_arguments(program):
    with pytest.raises(ValueError, match=r"not expected args: .*weights"):
        contrib.add_metrics(program, lambda weights: {})


def test_forward_features_adds_to_predictions(program):
    program.train(input_fn)
    forwarded = contrib.forward_features(program, "id")
    assert [p["id"] for p in forwarded.predict(input_fn)] == [7, 8]
    with pytest.raises(ValueError, match='Key "other" is not in features dict'):
        next(contrib.forward_features(program, ["other"]).predict(input_fn))
    with pytest.raises(TypeError, match="string or a list of strings"):
        contrib.forward_features(program, 3)


def test_early_stopping_is_that_of_tf_estimator():
    stop = tf.estimator.experimental.stop_if_no_decrease_hook
    assert contrib.stop_if_no_decrease_hook is stop
