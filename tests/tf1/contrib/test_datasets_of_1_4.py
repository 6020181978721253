"""Datasets of `tf.contrib.data`: those of `tf.data`, with the arguments of TF 1.4."""

from __future__ import annotations

import pytest

import estimator2strategy.tf1 as tf

data = tf.contrib.data


def elements(dataset):
    with tf.Session() as session:
        element = dataset.make_one_shot_iterator().get_next()
        found = []
        while True:
            try:
                found.append(session.run(element).tolist())
            except tf.errors.OutOfRangeError:
                return found


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_threads": 2},
        {"output_buffer_size": 3},
        {"num_threads": 2, "output_buffer_size": 3},
        {"num_parallel_calls": 2},
    ],
)
def test_map_takes_the_arguments_of_tf_1_4(arguments):
    dataset = data.Dataset.range(4).map(lambda x: 2 * x, **arguments)
    assert elements(dataset) == [0, 2, 4, 6]


def test_arguments_of_map_keep_their_places():
    assert elements(data.Dataset.range(2).map(lambda x: x + 1, 2, 3)) == [1, 2]


def test_the_output_buffer_is_a_prefetch():
    graph = tf.get_default_graph()
    data.Dataset.range(4).map(lambda x: x, output_buffer_size=7)._variant_tensor  # noqa: B018
    (prefetch,) = (op for op in graph.get_operations() if op.type == "PrefetchDataset")
    assert tf.get_static_value(prefetch.inputs[1]) == 7


@pytest.mark.parametrize(
    "of",
    [
        lambda dataset: dataset.shuffle(1),
        lambda dataset: dataset.repeat(1).take(3),
        lambda dataset: data.Dataset.zip((dataset, dataset)).map(lambda a, b: a),
        lambda dataset: dataset.apply(data.shuffle_and_repeat(1, 1)),
        lambda dataset: dataset.flat_map(lambda x: data.Dataset.from_tensors(x).map(abs)),
        lambda dataset: dataset.concatenate(dataset).take(3),
    ],
    ids=["shuffle", "repeat", "zip", "apply", "flat_map", "concatenate"],
)
def test_what_is_made_of_a_dataset_takes_them_too(of):
    dataset = of(data.Dataset.from_tensor_slices([1, 2, 3]))
    assert elements(dataset.map(lambda x: 10 * x, num_threads=2)) == [10, 20, 30]


def test_lines_are_read_in_an_input_fn(tmp_path):
    (tmp_path / "lines").write_text("1\n2\n")

    def input_fn():
        lines = data.TextLineDataset(str(tmp_path / "lines"))
        return lines.map(tf.string_to_number, num_threads=1, output_buffer_size=1).batch(2)

    def model_fn(features, mode):
        return tf.estimator.EstimatorSpec(mode, predictions=features)

    estimator = tf.estimator.Estimator(model_fn, model_dir=str(tmp_path))
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        session.run(step.initializer)
        tf.train.Saver().save(session, str(tmp_path / "model.ckpt"), step)
    assert list(estimator.predict(input_fn)) == [1, 2]


def test_a_dataset_of_tf_data_stays_as_it_was():
    with pytest.raises(TypeError, match="num_threads"):
        tf.data.Dataset.range(1).map(abs, num_threads=1)
    assert isinstance(data.Dataset.range(1), tf.data.Dataset)
