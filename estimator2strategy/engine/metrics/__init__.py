"""Metrics of `tf.compat.v1.metrics` as Keras 3 metrics with equal values.

Example:

    with observe_metric_calls() as calls:                   # around the user's metric_fn
        pairs = metric_fn(**tensors)
    converted = convert("accuracy", *pairs["accuracy"], calls)
    metric = converted.build()                              # a keras.metrics.Metric
    converted.update(metric, values_of(converted.inputs))   # for each batch
    metric.result()

    model.compile(metrics=[keras_metric_for("auc", num_thresholds=500)])     # without a recording
"""

from estimator2strategy.engine.metrics.convert import ConvertedMetric, convert
from estimator2strategy.engine.metrics.keras_classes import keras_metric_for
from estimator2strategy.engine.metrics.metric_table import MetricRow, rows
from estimator2strategy.engine.metrics.observe import ObservedCall, observe_metric_calls

__all__ = [
    "ConvertedMetric",
    "MetricRow",
    "ObservedCall",
    "convert",
    "keras_metric_for",
    "observe_metric_calls",
    "rows",
]
