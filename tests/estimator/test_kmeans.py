"""`tf.compat.v1.estimator.experimental.KMeans` finds the clusters that the original finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.programs import kmeans as program
from tests.same import assert_same

KMeans = estimator.experimental.KMeans
GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "kmeans.json").read_text())
POINTS = program.POINTS


def config(**changes):
    return estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=100, **changes)


def batches():
    return tf.data.Dataset.from_tensor_slices(POINTS).batch(10).repeat()


@pytest.mark.parametrize("case", GOLDEN)
def test_clusters_of_whole_inputs_are_the_originals(case, tmp_path):
    found = program.run(case, program.CASES[case], str(tmp_path), KMeans, config())
    assert_same(json.loads(json.dumps(found)), GOLDEN[case], case)


def moved(centers, counts, batch):
    """The centers (and counts of points) after a mini-batch: means of all points that came."""
    nearest = ((batch[:, None] - centers[None]) ** 2).sum(-1).argmin(1)
    centers, counts = centers.copy(), counts.copy()
    for k in range(len(centers)):
        near = batch[nearest == k]
        counts[k] += len(near)
        centers[k] += (near - centers[k]).sum(0) / counts[k]
    return centers, counts


def test_a_mini_batch_moves_centers_by_its_share_of_the_points(tmp_path):
    clustering = KMeans(3, str(tmp_path), POINTS[:3], config=config())
    clustering.train(batches, steps=2)
    centers, counts = moved(*moved(POINTS[:3], np.ones(3), POINTS[:10]), POINTS[10:20])
    np.testing.assert_allclose(clustering.cluster_centers(), centers, 1e-5)
    assert clustering.get_variable_value("Variable").tolist() == counts.tolist()


def test_centers_stay_until_an_iteration_of_mini_batches_is_done(tmp_path):
    options = {"mini_batch_steps_per_iteration": 3, "config": config()}
    clustering = KMeans(3, str(tmp_path), POINTS[:3], **options)
    clustering.train(batches, steps=2)
    np.testing.assert_array_equal(clustering.cluster_centers(), POINTS[:3])
    clustering.train(batches, steps=2)
    assert not np.array_equal(clustering.cluster_centers(), POINTS[:3])


def test_centers_are_chosen_from_as_many_batches_as_it_takes(tmp_path):
    clustering = KMeans(12, str(tmp_path), lambda inputs, k: inputs[0][:k], config=config())
    clustering.train(batches, steps=1)
    _, counts = moved(POINTS[:12], np.ones(12), POINTS[20:30])
    assert clustering.get_variable_value("Variable").tolist() == counts.tolist()


def test_it_is_exported_and_served(tmp_path):
    clustering = KMeans(3, str(tmp_path), POINTS[:3], use_mini_batch=False, config=config())
    clustering.train(lambda: tf.data.Dataset.from_tensors(POINTS).repeat(), steps=3)

    def receiver():
        points = tf.compat.v1.placeholder(tf.float32, [None, 3], name="points")
        return estimator.export.TensorServingInputReceiver(points, points)

    path = clustering.export_saved_model(str(tmp_path / "export"), receiver)
    served = tf.saved_model.load(path.decode()).signatures["cluster_index"]
    indices = served(tf.constant(POINTS))["output"].numpy().tolist()
    expected = clustering.predict_cluster_index(lambda: tf.data.Dataset.from_tensors(POINTS))
    assert indices == list(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial_clusters": "middle"}, "Unsupported initialization algorithm 'middle'"),
        ({"distance_metric": "taxicab"}, "Unsupported distance metric 'taxicab'"),
    ],
)
def test_a_word_that_is_unknown_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        KMeans(3, **options)
