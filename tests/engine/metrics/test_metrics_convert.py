"""What is converted, what is left to the generic replay, and what the numbers are by hand."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from metrics_parity import assert_same, record

from estimator2strategy.engine.metrics import convert, keras_metric_for, observe_metric_calls
from tests.strategies import mirrored

v1 = tf.compat.v1
NAN = float("nan")


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph, v1.variable_scope("", use_resource=True):
        yield graph


def _floats(shape=(None,)):
    return v1.placeholder(tf.float32, shape)


def _converted(make_pair):
    """`convert` of what `make_pair` returns; it may wrap the function's results."""
    with observe_metric_calls() as calls:
        value, update = make_pair()
    return convert("key", value, update, calls)


def _batches(**arrays):
    """Batches of uneven sizes 2, 2 and 1 from arrays of five examples."""
    return [
        {name: np.asarray(array)[start : start + 2] for name, array in arrays.items()}
        for start in (0, 2, 4)
    ]


# --- Numbers written out.


def test_accuracy_is_no_mean_of_batch_means() -> None:
    # 2 of 2, 2 of 2, 0 of 1: 0.8. The mean of the batches' means is 0.667.
    batches = _batches(labels=[1, 2, 3, 4, 5], predictions=[1, 2, 3, 4, 0])
    recorded = record("accuracy", batches[0])
    per_batch = [recorded.new([batch]) for batch in batches]

    assert recorded.new(batches) == recorded.legacy(batches) == np.float32(0.8)
    assert np.mean(per_batch) == pytest.approx(2 / 3)


def test_a_weighted_mean_divides_once_by_the_sum_of_all_weights() -> None:
    # (1*1 + 2*0 + 3*2 + 4*0 + 5*1) / (1 + 0 + 2 + 0 + 1) = 12 / 4
    batches = _batches(values=np.float32([1, 2, 3, 4, 5]), weights=np.float32([1, 0, 2, 0, 1]))
    recorded = record("mean", batches[0])

    assert recorded.new(batches) == recorded.legacy(batches) == 3.0


def test_the_mean_of_a_ragged_last_axis_counts_elements_not_rows() -> None:
    def pair():
        return v1.metrics.mean(values)

    with tf.Graph().as_default(), v1.variable_scope("", use_resource=True):
        values = _floats([None, None])
        converted = _converted(pair)
    metric = converted.build()
    converted.update(metric, [np.float32([[1, 1, 1, 1]])])
    converted.update(metric, [np.float32([[0]])])

    assert metric.result() == np.float32(0.8)  # keras.metrics.Mean() says 0.5
    assert isinstance(metric, keras.metrics.Mean)


def test_rank_and_column_shapes_match_as_in_v1() -> None:
    column = np.array([[1], [0], [1]])
    batch = {"labels": column, "predictions": np.array([1, 1, 1]), "weights": np.ones([3, 1])}
    recorded = record("accuracy", batch)

    assert recorded.new([batch]) == recorded.legacy([batch]) == np.float32(2 / 3)


@pytest.mark.parametrize("function", ["mean", "mean_squared_error", "root_mean_squared_error"])
@pytest.mark.parametrize("weights", [None, np.float32([1, 0])], ids=["unweighted", "weighted"])
def test_nan_predictions_make_a_mean_nan_even_at_weight_zero(function, weights) -> None:
    values = np.float32([1, NAN])
    batch = {"values": values} if function == "mean" else {"labels": values, "predictions": values}
    if weights is not None:
        batch["weights"] = weights
    recorded = record(function, batch)

    assert_same(recorded.new([batch]), recorded.legacy([batch]))
    assert np.isnan(recorded.new([batch]))


@pytest.mark.parametrize("function", ["accuracy", "precision", "recall", "true_positives"])
def test_nan_predictions_count_as_in_v1(function) -> None:
    batch = {"labels": np.float32([1, 1, 0]), "predictions": np.float32([1, NAN, NAN])}
    recorded = record(function, batch)

    assert_same(recorded.new([batch]), recorded.legacy([batch]), exact=True)


@pytest.mark.parametrize("wrong", [NAN, 1.5, -0.5])
def test_predictions_that_are_no_probabilities_fail_as_in_v1(wrong) -> None:
    batch = {"labels": np.array([1, 0]), "predictions": np.float32([0.5, wrong])}
    recorded = record("auc", batch)

    for run in (recorded.new, recorded.legacy):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"
        ):
            run([batch])


@pytest.mark.parametrize(
    ("function", "expected"),
    [("mean", 0.0), ("accuracy", 0.0), ("precision", 0.0), ("recall", 0.0), ("auc", 0.0)],
)
def test_the_empty_set(function, expected) -> None:
    names = ("values",) if function == "mean" else ("labels", "predictions")
    recorded = record(function, {name: np.float32([]) for name in names})

    assert recorded.new([]) == recorded.legacy([]) == pytest.approx(expected, abs=1e-6)


def test_auc_without_positives_is_one_as_in_v1() -> None:
    batch = {"labels": np.array([0, 0]), "predictions": np.float32([0.2, 0.7])}
    recorded = record("auc", batch)

    assert_same(recorded.new([batch]), recorded.legacy([batch]), exact=True)
    assert recorded.new([batch]) == pytest.approx(1.0, abs=1e-6)  # keras.metrics.AUC() says 0.0


def test_the_last_threshold_of_specificity_at_sensitivity_lies_below_one() -> None:
    # No sensitivity is as near to 0 as that of the last threshold. Even there the negative
    # example of prediction 1.0 counts as positive: specificity 1 / 2.
    batch = {"labels": np.array([0, 0, 1]), "predictions": np.float32([1.0, 0.2, 0.5])}
    recorded = record("specificity_at_sensitivity", batch, sensitivity=0.0)

    assert_same(recorded.new([batch]), recorded.legacy([batch]), exact=True)
    assert recorded.new([batch]) == pytest.approx(0.5, abs=1e-6)


def test_a_negative_total_weight_gives_zero() -> None:
    batch = {"values": np.float32([1, 2]), "weights": np.float32([-3, 1])}
    recorded = record("mean", batch)

    assert recorded.new([batch]) == recorded.legacy([batch]) == 0.0


def test_weights_larger_than_the_labels_count_each_label_several_times() -> None:
    batch = {
        "labels": np.ones([2, 1]),
        "predictions": np.ones([2, 1]),
        "weights": np.float32([[1, 2, 3], [4, 5, 6]]),
    }
    recorded = record("true_positives", batch)

    assert recorded.new([batch]) == recorded.legacy([batch]) == 21.0


@pytest.mark.parametrize("function", ["mean_iou", "mean_per_class_accuracy"])
def test_a_label_that_is_no_class_fails_as_in_v1(function) -> None:
    batch = {"labels": np.array([0, 7]), "predictions": np.array([0, 1])}
    recorded = record(function, batch, num_classes=3)

    for run in (recorded.new, recorded.legacy):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run([batch])


def test_weights_of_a_wrong_size_fail_as_in_v1() -> None:
    batch = {"values": np.float32([1]), "weights": np.float32([1, 2, 3])}
    recorded = record("mean", batch)

    for run in (recorded.new, recorded.legacy):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run([batch])


# --- What conversion keeps.


def test_constants_become_part_of_the_metric(graph) -> None:
    labels = _floats()

    converted = _converted(lambda: v1.metrics.mean_squared_error(labels, [1.0, 2.0], weights=2))

    assert converted.inputs == (labels,)
    metric = converted.build()
    assert metric.name == "key"
    assert converted.function == "mean_squared_error"


def test_constant_predictions_and_weights_give_the_legacy_number() -> None:
    batch = {"labels": np.float32([1, 4])}
    recorded = record("mean_squared_error", batch, predictions=[1.0, 2.0], weights=2)

    assert recorded.new([batch]) == recorded.legacy([batch]) == 2.0


@pytest.mark.parametrize(
    "as_option",
    [np.int64, np.int32, v1.Dimension, int],
    ids=["numpy int64", "numpy int32", "Dimension", "int"],
)
def test_options_may_be_numpy_numbers_or_dimensions(graph, as_option) -> None:
    ids = v1.placeholder(tf.int64, [None])

    assert _converted(lambda: v1.metrics.mean_per_class_accuracy(ids, ids, as_option(3)))


def test_every_build_gives_fresh_variables() -> None:
    converted = record("mean", {"values": np.float32([1])}).converted
    first, second = converted.build(), converted.build()

    converted.update(first, [np.float32([1])])

    assert (first.result(), second.result()) == (1.0, 0.0)


def test_the_users_floatx_does_not_matter() -> None:
    recorded = record("mean", {"values": np.float32([1])})
    before = keras.config.floatx()
    keras.config.set_floatx("float16")
    try:
        metric = recorded.converted.build()
    finally:
        keras.config.set_floatx(before)
    recorded.converted.update(metric, [np.float32([1 + 1e-5])])

    assert metric.result().numpy() == np.float32(1 + 1e-5)


def test_confusion_matrices_count_in_float64() -> None:
    (matrix,) = keras_metric_for("mean_iou", num_classes=2).variables

    assert matrix.dtype == "float64"


# --- What is left to the generic replay.


def _mean(**arguments):
    return lambda: v1.metrics.mean(_floats(), **arguments)


def _wrapped_value():
    value, update = v1.metrics.mean(_floats())
    return value * 100.0, update


def _wrapped_update():
    value, update = v1.metrics.mean(_floats())
    return value, tf.identity(update)


def _grouped_update():
    value, update = v1.metrics.mean(_floats())
    return value, tf.group(update)


def _other_update():
    value, _ = v1.metrics.mean(_floats())
    _, update = v1.metrics.mean(_floats())
    return value, update


def _controlled():
    with tf.control_dependencies([tf.no_op()]):
        return v1.metrics.mean(_floats())


def _of_a_variable():
    return v1.metrics.mean(v1.get_variable("v", [2]))


def _of_a_packed_list():
    return v1.metrics.mean([tf.reduce_sum(_floats()), 2.0])


def _thresholds_of_unknown_value():
    return v1.metrics.percentage_below(_floats(), v1.get_variable("t", []))


LEFT = {
    "value wrapped in more maths": _wrapped_value,
    "update wrapped in more maths": _wrapped_update,
    "update grouped": _grouped_update,
    "update of another metric": _other_update,
    "no metric function": lambda: (tf.constant(1.0), tf.no_op()),
    "value in a collection": _mean(metrics_collections=["mine"]),
    "update in a collection": _mean(updates_collections=["mine"]),
    "update under control dependencies": _controlled,
    "values of unknown rank": lambda: v1.metrics.mean(_floats(None)),
    "weights of unknown rank": lambda: v1.metrics.mean(_floats(), weights=_floats(None)),
    "a variable": _of_a_variable,
    "a list of tensors": _of_a_packed_list,
    "a variable threshold": _thresholds_of_unknown_value,
}


@pytest.mark.parametrize("pair", LEFT.values(), ids=LEFT.keys())
def test_is_left_to_the_generic_replay(graph, pair) -> None:
    assert _converted(pair) is None


def test_without_observed_calls_nothing_is_converted(graph) -> None:
    value, update = v1.metrics.mean(_floats())

    assert convert("key", value, update, []) is None


@pytest.mark.parametrize(
    "as_given",
    [lambda update: update, lambda update: update.op, tf.convert_to_tensor],
    ids=["as returned", "its op", "as a tensor"],
)
@pytest.mark.parametrize("function", ["accuracy", "true_positives"])
def test_the_update_is_recognised_in_each_form(graph, function, as_given) -> None:
    with observe_metric_calls() as calls:
        value, update = getattr(v1.metrics, function)(_floats(), _floats())

    assert convert("key", value, as_given(update), calls)


def test_two_metrics_in_one_graph_are_told_apart(graph) -> None:
    labels, predictions, losses = _floats(), _floats(), _floats()
    with observe_metric_calls() as calls:
        accuracy = v1.metrics.accuracy(labels, predictions)
        loss = v1.metrics.mean(losses)

    assert convert("a", *accuracy, calls).inputs == (labels, predictions)
    assert convert("b", *loss, calls).inputs == (losses,)


# --- In Keras.


def test_works_in_model_compile_and_evaluate() -> None:
    model = keras.Sequential([keras.Input([1]), keras.layers.Activation("linear")])
    metric = keras_metric_for("precision")
    model.compile(loss="mse", metrics=[metric], weighted_metrics=[keras_metric_for("recall")])
    predicted = np.float32([[1], [1], [0], [1], [0]])
    labels = np.float32([1, 0, 1, 1, 0])

    results = model.evaluate(
        predicted,
        labels,
        sample_weight=np.float32([1, 1, 1, 2, 1]),
        batch_size=2,
        verbose=0,
        return_dict=True,
    )

    assert results["precision"] == pytest.approx(2 / 3)
    assert results["recall"] == pytest.approx(3 / 4)


def test_a_metric_survives_serialization() -> None:
    metric = keras_metric_for("auc", name="area", curve="PR", num_thresholds=11)
    copy = keras.metrics.deserialize(keras.metrics.serialize(metric))

    for each in (metric, copy):
        each.update_state([0, 1, 1], [0.1, 0.4, 0.9])
    assert copy.name == "area"
    assert copy.result() == metric.result()


def test_reset_state_forgets_all_batches() -> None:
    metric = keras_metric_for("auc")
    empty = metric.result()
    metric.update_state([0, 1], [0.1, 0.4])

    metric.reset_state()

    assert metric.result() == empty
    assert len(metric.variables) == 4


def test_sums_over_replicas() -> None:
    strategy = mirrored(8)
    with strategy.scope():
        metric = keras_metric_for("accuracy")
    strategy.run(lambda: metric.update_state([1, 2], [1, 3]))

    assert metric.result() == 0.5


def test_shapes_that_v1_refuses_are_refused_in_compile_too() -> None:
    with pytest.raises(ValueError, match="incompatible"):
        keras_metric_for("accuracy").update_state([[1], [2]], [[0.1, 0.9], [0.2, 0.8]])


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("accurracy", {}, "No metric function 'accurracy'; there are: accuracy, auc"),
        ("auc", {"threshold": 3}, r"auc has no argument \['threshold'\].*num_thresholds"),
        ("mean_iou", {}, r"mean_iou needs \['num_classes'\]"),
        ("auc", {"curve": "X"}, "Curve must be either ROC or PR"),
        ("auc", {"summation_method": "x"}, "not one of .*careful_interpolation"),
    ],
)
def test_errors_name_what_is_wrong(function, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        keras_metric_for(function, **arguments)
