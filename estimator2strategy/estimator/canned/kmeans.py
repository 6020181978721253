"""Clustering without labels: `tf.compat.v1.estimator.experimental.KMeans`.

Example:

    estimator = KMeansClustering(5, use_mini_batch=False)
    estimator.train(input_fn, steps=10)
    estimator.cluster_centers()

Source: tensorflow_estimator 2.15 canned/kmeans.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.wrong_argument import checked
from estimator2strategy.estimator.canned_rules import KMEANS_RULES
from estimator2strategy.estimator.estimator import Estimator
from estimator2strategy.estimator.export import PredictOutput
from estimator2strategy.estimator.run_config import RunConfig
from estimator2strategy.estimator.specs import EstimatorSpec

tf1 = tf.compat.v1

SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE = "squared_euclidean", "cosine"
RANDOM_INIT, KMEANS_PLUS_PLUS_INIT = "random", "kmeans_plus_plus"


class KMeansClustering(Estimator):
    """Finds clusters of points by Lloyd's algorithm, on whole inputs or on mini-batches.

    input_fn returns float32 [points, dimensions], or a dict of such features, which are put side by
    side in the order of their names; no labels.

    Args:
        num_clusters: The number of clusters; not used where `initial_clusters` are values.
        model_dir: As for Estimator.
        initial_clusters: `RANDOM_INIT`, `KMEANS_PLUS_PLUS_INIT`, values [num_clusters, dimensions],
            or `f([batch], k)` that chooses up to k centers of a batch, and is called with further
            batches until there are enough.
        distance_metric: `SQUARED_EUCLIDEAN_DISTANCE` or `COSINE_DISTANCE`.
        seed: Of the choice of initial centers.
        use_mini_batch: False: each step is an iteration over a batch that must be all points.
        mini_batch_steps_per_iteration: After how many steps the centers are updated.
        kmeans_plus_plus_num_retries: The number of extra points that are drawn for each center.
        relative_tolerance: Training stops where the loss changes by less than that, relatively.
        config: As for Estimator.
        feature_columns: Columns that select and convert features of a dict; None: all features.

    Raises:
        ValueError: There is no such `initial_clusters` or `distance_metric`.
    """

    SQUARED_EUCLIDEAN_DISTANCE = SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = COSINE_DISTANCE
    RANDOM_INIT = RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = KMEANS_PLUS_PLUS_INIT
    # The metric of `evaluate`, the keys of `predict`, and the name of the variable.
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = "clusters"

    @checked(KMEANS_RULES)
    def __init__(
        self,
        num_clusters: Any,
        model_dir: str | os.PathLike[str] | None = None,
        initial_clusters: str | Any | Callable[[Any, Any], Any] = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Sequence[Any] | None = None,
    ):
        if isinstance(initial_clusters, str) and initial_clusters not in (
            RANDOM_INIT,
            KMEANS_PLUS_PLUS_INIT,
        ):
            raise ValueError(
                f"Unsupported initialization algorithm '{initial_clusters}': initial_clusters"
            )
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric '{distance_metric}': distance_metric")
        self._distance_metric = distance_metric

        def model_fn(features: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            clustering = _tf_private.KMeans(
                inputs=_points(features, feature_columns),
                num_clusters=num_clusters,
                initial_clusters=initial_clusters,
                distance_metric=distance_metric,
                use_mini_batch=use_mini_batch,
                mini_batch_steps_per_iteration=mini_batch_steps_per_iteration,
                random_seed=seed,
                kmeans_plus_plus_num_retries=kmeans_plus_plus_num_retries,
            )
            return _spec(clustering, mode, config, relative_tolerance)

        super().__init__(model_fn, model_dir=model_dir, config=config)

    def predict_cluster_index(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The index (int64) of the nearest center, for each point."""
        return self._predicted(input_fn, self.CLUSTER_INDEX)

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[np.ndarray]:
        """The distances float32 [clusters] to all centers, for each point; not squared."""
        euclidean = self._distance_metric == SQUARED_EUCLIDEAN_DISTANCE
        for distances in self._predicted(input_fn, self.ALL_DISTANCES):
            yield np.sqrt(distances) if euclidean else distances

    def score(self, input_fn: Callable[..., Any]) -> Any:
        """The sum of the (squared) distances to the nearest centers, over one batch."""
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def cluster_centers(self) -> np.ndarray:
        """The centers, float32 [clusters, dimensions]."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)

    def _predicted(self, input_fn: Callable[..., Any], key: str) -> Iterator[Any]:
        for predictions in self.predict(input_fn, predict_keys=[key]):
            yield predictions[key]


def _points(features: Any, columns: Sequence[Any] | None) -> tf.Tensor:
    if not isinstance(features, Mapping):
        return features
    if columns:
        return tf1.feature_column.input_layer(features, columns)
    return tf.concat([features[key] for key in sorted(features)], axis=1)


def _spec(
    clustering: Any, mode: str, config: RunConfig, relative_tolerance: float | None
) -> EstimatorSpec:
    distances, indices, losses, initialized, init_op, train_op = clustering.training_graph()
    loss = tf.reduce_sum(losses)
    tf1.summary.scalar("loss/raw", loss)
    with tf.control_dependencies([train_op, tf1.assign_add(tf1.train.get_global_step(), 1)]):
        train_op = tf.identity(loss)
    hooks: list[tf1.train.SessionRunHook] = [
        _InitializeClustersHook(init_op, initialized, config.is_chief)
    ]
    if relative_tolerance is not None:
        hooks.append(_LossRelativeChangeHook(loss, relative_tolerance))
    by_key = {
        KMeansClustering.ALL_DISTANCES: distances[0],
        KMeansClustering.CLUSTER_INDEX: indices[0],
    }
    served = {**by_key, tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: indices[0]}
    return EstimatorSpec(
        mode,
        predictions=by_key,
        loss=loss,
        train_op=train_op,
        eval_metric_ops={KMeansClustering.SCORE: tf1.metrics.mean(loss)},
        training_hooks=hooks,
        export_outputs={name: PredictOutput(value) for name, value in served.items()},
    )


class _InitializeClustersHook(tf1.train.SessionRunHook):
    """Chooses initial centers, of as many batches as it takes; workers wait for the chief's."""

    def __init__(self, init_op: Any, initialized: Any, is_chief: bool):
        self._init_op, self._initialized, self._is_chief = init_op, initialized, is_chief

    def after_create_session(self, session: tf1.Session, coord: Any) -> None:
        while not session.run(self._initialized):
            if self._is_chief:
                session.run(self._init_op)
            else:
                time.sleep(1)


class _LossRelativeChangeHook(tf1.train.SessionRunHook):
    """Stops where the loss hardly changes any more."""

    def __init__(self, loss: tf.Tensor, tolerance: float):
        self._loss, self._tolerance = loss, tolerance
        self._before: float | None = None

    def before_run(self, run_context: Any) -> Any:
        return tf1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss = run_values.results
        if self._before and abs(loss - self._before) / (1 + abs(self._before)) < self._tolerance:
            run_context.request_stop()
        self._before = loss
