"""Clusters points with tf.compat.v1.estimator.experimental.KMeans: the real one, or ours.

    python kmeans.py FOLDER

Prints JSON: case -> variables, centers, score, predictions and distances.
tests/goldens/kmeans.json is its output on TensorFlow 2.15.1.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
RANDOM = np.random.RandomState(3)
CENTERS = np.array([[4, 0, 1], [-4, 2, 0], [0, -5, 3]], np.float32)
POINTS = (CENTERS[RANDOM.randint(0, 3, 60)] + RANDOM.randn(60, 3)).astype(np.float32)
# On whole inputs: of mini-batches a Session counts points before or after it divides by how many
# there are.
CASES = {
    "given": {"initial_clusters": POINTS[:3]},
    "random": {"seed": 7},
    "plus_plus": {"initial_clusters": "kmeans_plus_plus", "seed": 5},
    "cosine": {"seed": 7, "distance_metric": "cosine"},
    "chosen_by_a_function": {"initial_clusters": lambda inputs, k: inputs[0][: tf.minimum(k, 2)]},
    "until_it_hardly_changes": {"initial_clusters": POINTS[:3], "relative_tolerance": 0.01},
    "columns": {
        "seed": 7,
        "feature_columns": [tf.feature_column.numeric_column("a", shape=(3,))],
    },
}


def run(name, options, folder, estimator, config):
    named = "feature_columns" in options

    def input_fn(repeat=True):
        points = {"b": POINTS * 0, "a": POINTS} if named else POINTS
        data = tf.data.Dataset.from_tensor_slices(points).batch(60)
        return data.repeat() if repeat else data

    folder = os.path.join(folder, name)
    model = estimator(3, model_dir=folder, use_mini_batch=False, config=config, **options)
    model.train(input_fn, steps=9)
    distances = list(model.transform(lambda: input_fn(False)))
    return {
        "variables": [
            [key, shape]
            for key, shape in tf.train.list_variables(model.model_dir)
            if "OBJECT_GRAPH" not in key
        ],
        "step": int(model.get_variable_value("global_step")),
        "centers": model.cluster_centers().tolist(),
        "score": float(model.score(input_fn)),
        "indices": [int(i) for i in model.predict_cluster_index(lambda: input_fn(False))],
        "distances": np.array(distances).tolist(),
    }


def main(folder, estimator):
    config = estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=100)
    clustering = estimator.experimental.KMeans
    return {name: run(name, options, folder, clustering, config) for name, options in CASES.items()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], tf1.estimator), sort_keys=True))
