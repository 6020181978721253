"""`numpy_input_fn` and `pandas_input_fn`: which rows come, in which batches, of which types."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import host_estimator

tf1 = tf.compat.v1
numpy_input_fn = estimator.inputs.numpy_input_fn
pandas_input_fn = estimator.inputs.pandas_input_fn

X = {"b": np.arange(32, 36), "a": np.arange(4) * 1.0}
Y = np.arange(-32, -28)
FRAME = pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": ["x", "yy", "é"]}, index=[7, 8, 9])


def drawn(input_fn, count=None, seed=None):
    """The values of `count` batches, or of all until the input ends."""
    batches = []
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.set_random_seed(seed)
        batch = input_fn()
        try:
            while count is None or len(batches) < count:
                batches.append(session.run(batch))
        except tf.errors.OutOfRangeError:
            pass
    return batches


def rows(batches):
    return [batch.tolist() for batch in batches]


def test_features_and_labels_are_shaped_like_the_arrays():
    (features, labels), (_, last) = drawn(numpy_input_fn(X, Y, batch_size=3, shuffle=False))
    assert list(features) == ["a", "b"]
    assert features["a"].tolist() == [0.0, 1.0, 2.0]
    assert features["b"].tolist() == [32, 33, 34]
    assert labels.tolist() == [-32, -31, -30]
    assert last.tolist() == [-29]


def test_an_array_is_an_array_and_a_dict_of_labels_a_dict():
    x, y = np.arange(12.0).reshape(2, 2, 3), {"z": np.array([1, 2]), "y": np.array([3, 4])}
    ((features, labels),) = drawn(numpy_input_fn(x, y, shuffle=False))
    np.testing.assert_array_equal(features, x)
    assert {name: values.tolist() for name, values in labels.items()} == {"y": [3, 4], "z": [1, 2]}


def test_without_labels_there_are_features_only():
    assert rows(drawn(numpy_input_fn(Y, shuffle=False))) == [Y.tolist()]


def test_batches_go_across_the_end_of_an_epoch():
    batches = drawn(numpy_input_fn(np.arange(3), batch_size=2, num_epochs=3, shuffle=False))
    assert rows(batches) == [[0, 1], [2, 0], [1, 2], [0, 1], [2]]


def test_without_epochs_there_is_no_end_and_batches_are_of_one_size():
    input_fn = numpy_input_fn(np.arange(3), batch_size=2, num_epochs=None, shuffle=False)
    assert rows(drawn(input_fn, count=4)) == [[0, 1], [2, 0], [1, 2], [0, 1]]
    with tf.Graph().as_default():
        assert input_fn().shape == [2]


def test_shapes_are_known_but_for_the_last_batch():
    with tf.Graph().as_default():
        features = numpy_input_fn(np.zeros([5, 2, 3], np.float32), shuffle=False)()
    assert features.shape.as_list() == [None, 2, 3]
    assert features.dtype == tf.float32


def test_shuffling_gives_each_row_as_often_as_there_are_epochs():
    batches = drawn(numpy_input_fn(np.arange(100), batch_size=7, num_epochs=3, shuffle=True))
    values = [value for batch in rows(batches) for value in batch]
    assert sorted(values) == sorted([*range(100)] * 3)
    assert values[:100] != sorted(values[:100])


def test_shuffling_starts_at_any_row_and_chooses_among_few():
    """As from a queue: no row is far from the place that it would have had."""
    input_fn = numpy_input_fn(
        np.arange(1000), batch_size=1000, num_epochs=1, shuffle=True, queue_capacity=10
    )
    starts = set()
    for seed in range(3):
        (values,) = drawn(input_fn, seed=seed)
        starts.add(values[0] // 20)
        in_order = (values - values[0]) % 1000
        assert np.mean(np.abs(np.diff(in_order)) < 100) > 0.9
    assert len(starts) > 1


def test_the_graphs_seed_decides_how_rows_are_shuffled():
    input_fn = numpy_input_fn(np.arange(50), batch_size=50, shuffle=True)
    first, again, other = (rows(drawn(input_fn, seed=seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_each_thread_reads_all_epochs(caplog):
    input_fn = numpy_input_fn(np.arange(3), batch_size=2, num_threads=2, shuffle=False)
    with caplog.at_level(logging.WARNING, "tensorflow"):
        values = [value for batch in rows(drawn(input_fn)) for value in batch]
    assert sorted(values) == [0, 0, 1, 1, 2, 2]
    assert "num_epochs is applied per thread" in caplog.text


def test_rows_are_read_when_they_are_needed():
    """Of an array on disk, say, or one that the program goes on changing."""
    array = np.arange(4.0)
    input_fn = numpy_input_fn(array, batch_size=4, shuffle=False)
    array[1] = 10.0
    assert rows(drawn(input_fn)) == [[0.0, 10.0, 2.0, 3.0]]
    with tf.Graph().as_default() as graph:
        numpy_input_fn(np.zeros([1000, 1000]), shuffle=False)()
        assert graph.as_graph_def().ByteSize() < 20_000


@pytest.mark.parametrize("strings", [np.array(["a", "é"]), np.array([b"a", "é"], object)])
def test_strings(strings):
    assert rows(drawn(numpy_input_fn(strings, shuffle=False))) == [[b"a", "é".encode()]]


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_strings_of_a_series(dtype):
    # pandas 3 gives columns of strings a dtype of its own, which is none of numpy's.
    series = FRAME.reset_index()["b"].astype(dtype)
    ((features, labels),) = drawn(numpy_input_fn({"b": series}, series, shuffle=False))
    assert features["b"].tolist() == labels.tolist() == [b"x", b"yy", "é".encode()]


def test_a_model_is_trained_and_evaluated_on_arrays(model_dir):
    x = np.arange(1, 7, dtype=np.float32)
    model = host_estimator(model_dir)
    model.train(numpy_input_fn(x, batch_size=2, num_epochs=2, shuffle=False))
    assert model.get_variable_value("weight") == -2 * (1.5 + 3.5 + 5.5)
    assert model.evaluate(numpy_input_fn(x, batch_size=4, shuffle=False))["loss"] == 4.0
    predictions = model.predict(numpy_input_fn(x, batch_size=4, shuffle=False))
    assert [prediction["sum"] for prediction in predictions] == [-20, -19, -18, -17, -16, -15]


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ({}, None, ValueError, "x cannot be an empty dict"),
        (np.zeros([0]), None, ValueError, "x cannot be an empty array"),
        ([1, 2], None, TypeError, "x must be a dict or array; got list"),
        (X, {}, ValueError, "y cannot be empty dict"),
        (X, np.arange(3), ValueError, "Length of tensors in x and y is mismatched"),
        (X, {"a": Y}, ValueError, "1 duplicate keys are found in both x and y"),
    ],
)
def test_wrong_arrays(x, y, error, message):
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        numpy_input_fn(x, y, shuffle=False)()


@pytest.mark.parametrize("function", [numpy_input_fn, pandas_input_fn])
def test_whether_to_shuffle_must_be_said(function):
    with pytest.raises(ValueError, match="shuffle must be provided and explicitly set as boolean"):
        function(FRAME)


class TestPandas:
    def test_columns_become_features_and_a_series_the_labels(self):
        y = pd.Series([1, 2, 3], index=FRAME.index)
        batches = drawn(pandas_input_fn(FRAME, y, batch_size=2, shuffle=False))
        (features, labels), (_, last) = batches
        assert list(features) == ["a", "b"]
        assert features["a"].tolist() == [1.5, 2.5]
        assert features["b"].tolist() == [b"x", b"yy"]
        assert (labels.tolist(), last.tolist()) == ([1, 2], [3])
        assert labels.dtype == np.int64

    def test_labels_of_a_frame_may_be_called_like_features(self):
        y = pd.DataFrame({"a": [1, 2, 3], "c": [4, 5, 6]}, index=FRAME.index)
        ((features, labels),) = drawn(pandas_input_fn(FRAME, y, shuffle=False))
        assert features["a"].tolist() == [1.5, 2.5, 3.5]
        assert {k: v.tolist() for k, v in labels.items()} == {"a": [1, 2, 3], "c": [4, 5, 6]}

    def test_later_changes_of_the_frame_are_not_seen(self):
        frame = FRAME.copy()
        input_fn = pandas_input_fn(frame, shuffle=False)
        frame["a"] = 0.0
        assert drawn(input_fn)[0]["a"].tolist() == [1.5, 2.5, 3.5]

    @pytest.mark.parametrize("capacity", [1, None])
    def test_shuffled_rows_stay_together(self, capacity):
        frame = pd.DataFrame({"a": range(50)})
        input_fn = pandas_input_fn(
            frame, frame["a"] * 2, shuffle=True, num_epochs=2, queue_capacity=capacity
        )
        batches = drawn(input_fn)
        pairs = [pair for x, y in batches for pair in zip(x["a"].tolist(), y.tolist())]
        assert sorted(pairs) == sorted([(i, 2 * i) for i in range(50)] * 2)

    def test_a_column_called_like_the_target_is_refused(self):
        with pytest.raises(ValueError, match="Cannot use name a for target column"):
            pandas_input_fn(FRAME, FRAME["a"], shuffle=False, target_column="a")

    def test_another_index_is_refused(self):
        with pytest.raises(ValueError, match="Index for x and y are mismatched"):
            pandas_input_fn(FRAME, pd.Series([1, 2, 3]), shuffle=False)

    def test_the_target_is_a_string(self):
        with pytest.raises(TypeError, match="target_column must be a string type"):
            pandas_input_fn(FRAME, FRAME["a"], shuffle=False, target_column=["one", "two"])


def test_a_variable_may_have_the_name_of_an_argument_of_the_input(model_dir):
    def model_fn(features, labels, mode):
        count = tf1.get_variable("count", [], initializer=tf1.zeros_initializer())
        train_op = tf1.assign_add(tf1.train.get_global_step(), 1)
        return estimator.EstimatorSpec(mode, loss=count + 1.0, train_op=train_op)

    legacy = estimator.Estimator(model_fn, model_dir)
    legacy.train(numpy_input_fn(X, Y, shuffle=True), steps=1)
    assert "count" in legacy.get_variable_names()
