"""`keras_metrics`: the metrics of an eval_metrics tuple, without its model."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import keras_metrics
from tests.keras_model.programs import metrics_of
from tests.strategies import mirrored

tf1 = tf.compat.v1
RANDOM = np.random.RandomState(0)
LABELS = RANDOM.randint(10, size=[4, 50]).astype(np.int32)
LOGITS = RANDOM.rand(4, 50, 10).astype(np.float32)
LOGITS[..., 8] += (LABELS == 8) * 0.9


def expected(metric_fn, tensors_of) -> dict[str, float]:
    """What a Session of TF1 counts."""
    with tf.Graph().as_default(), tf1.Session() as session:
        labels, logits = tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.float32, [None, 10])
        pairs = tensors_of(metric_fn, labels, logits)
        session.run(tf1.local_variables_initializer())
        for batch in zip(LABELS, LOGITS, strict=True):
            updates = [update for _, update in pairs.values()]
            session.run(updates, dict(zip((labels, logits), batch, strict=True)))
        return {name: float(session.run(value)) for name, (value, _) in pairs.items()}


def results(metrics) -> dict[str, float]:
    return {name: float(metric.result()) for name, metric in metrics.items()}


def by_position(metric_fn, labels, logits):
    return metric_fn(labels, logits)


def test_metrics_of_a_list_count_what_a_session_counts():
    metrics = keras_metrics(metrics_of, [LABELS[0], LOGITS[0]])
    assert list(metrics) == ["accuracy", "f1"]
    assert all(isinstance(metric, keras.metrics.Metric) for metric in metrics.values())
    for labels, logits in zip(LABELS, LOGITS, strict=True):
        for metric in metrics.values():
            metric.update_state(labels, logits)
    assert results(metrics) == pytest.approx(expected(metrics_of, by_position), rel=1e-5)
    for metric in metrics.values():
        metric.reset_state()
        metric.update_state(LABELS[0, :7], LOGITS[0, :7])  # a last batch
    right = np.mean(LABELS[0, :7] == LOGITS[0, :7].argmax(-1))
    assert results(metrics)["accuracy"] == pytest.approx(right)


def test_metrics_of_a_dict_take_its_names():
    def metric_fn(*, logits, labels):
        return metrics_of(labels, logits)

    specs = {
        "labels": tf.TensorSpec([None], tf.int32),
        "logits": tf.TensorSpec([None, 10], tf.float32),
    }
    metrics = keras_metrics(metric_fn, specs)

    @tf.function
    def count(labels, logits):
        for metric in metrics.values():
            metric.update_state(labels=labels, logits=logits)

    for labels, logits in zip(LABELS, LOGITS, strict=True):
        count(labels, logits)
    assert results(metrics) == pytest.approx(expected(metrics_of, by_position), rel=1e-5)


def test_replicas_count_together():
    strategy = mirrored(2)
    with strategy.scope():
        metrics = keras_metrics(metrics_of, [LABELS[0], LOGITS[0]])
    data = tf.data.Dataset.from_tensor_slices((LABELS.reshape(-1), LOGITS.reshape(-1, 10)))

    @tf.function
    def count(batch):
        def of_replica(labels, logits):
            for metric in metrics.values():
                metric.update_state(labels, logits)

        strategy.run(of_replica, args=batch)

    for batch in strategy.experimental_distribute_dataset(data.batch(50)):
        count(batch)
    assert results(metrics) == pytest.approx(expected(metrics_of, by_position), rel=1e-5)


def test_keras_takes_them():
    model = keras.Sequential([keras.Input([10]), keras.layers.Activation("linear")])
    metric = keras_metrics(metrics_of, [LABELS[0], LOGITS[0]])["accuracy"]
    model.compile(loss="sparse_categorical_crossentropy", metrics=[metric])
    flat = LOGITS.reshape(-1, 10), LABELS.reshape(-1)
    found = model.evaluate(*flat, batch_size=40, return_dict=True, verbose=0)
    right = expected(metrics_of, by_position)["accuracy"]
    assert found["accuracy"] == pytest.approx(right, rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (3, []),
            r"metric_fn must be callable, given: 3\n(.|\n)*Pass eval_metrics\[0\], a function",
        ),
        (
            (metrics_of, 3),
            r"tensors must be a list or a dict, given: 3\n(.|\n)*Pass eval_metrics\[1\]",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(TypeError, match=message):
        keras_metrics(*arguments)


def test_values_must_be_those_of_metric_fn():
    metric = keras_metrics(metrics_of, [LABELS[0], LOGITS[0]])["accuracy"]
    with pytest.raises(ValueError, match="accuracy takes 2 tensors, given: 1"):
        metric.update_state(LABELS[0])
    with pytest.raises(ValueError, match="accuracy: pass values by position"):
        metric.update_state(labels=LABELS[0])
