"""A metric is one number over all real examples, whatever dealt them out; on cores too.

A result that breaks this must be seen here: a mean of the replicas' means, a last batch that is
dropped, padding that is counted.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.metrics import keras_metric_for
from estimator2strategy.engine.record import input_fn

tf1 = tf.compat.v1
tpu = estimator.tpu

# 39 examples: the third batch of 16 has 7, and on cores a padding of 9 to fill it up.
SIZE, BATCH = 39, 16
BATCHES = 3
RANDOM = np.random.RandomState(11)
LABELS = RANDOM.randint(0, 2, SIZE).astype(np.int64)
PROBABILITIES = np.clip(RANDOM.rand(SIZE) * 0.7 + 0.3 * LABELS, 0, 1).astype(np.float32)
CLASSES = (PROBABILITIES > 0.5).astype(np.int64)


def own_count(values):
    """A streaming metric of the user's own."""
    count = tf1.get_local_variable("count", [], initializer=tf1.zeros_initializer())
    return tf.identity(count), count.assign_add(tf.reduce_sum(values))


def host_only(labels, classes, real):
    """A pair of the user's own, whose update is Python code on the host."""
    hits = tf1.get_local_variable("hits", [], tf.float64, tf1.zeros_initializer())

    def count(labels, classes, real):
        return np.sum((labels == classes) * real, dtype=np.float64)

    found = tf1.py_func(count, [labels, classes, real], tf.float64)
    return tf.identity(hits), hits.assign_add(tf.reshape(found, []))


def metric_fn(labels, probabilities, real):
    classes = tf.cast(probabilities > 0.5, tf.int64)
    precision = tf1.metrics.precision(labels, classes, real)
    recall = tf1.metrics.recall(labels, classes, real)
    f1 = 2 * precision[0] * recall[0] / (precision[0] + recall[0])
    return {
        "accuracy": tf1.metrics.accuracy(labels, classes, real),
        "auc": tf1.metrics.auc(labels, probabilities, real),
        "f1": (f1, tf.group(precision[1], recall[1])),
        "hits": host_only(labels, classes, real),
        "iou": tf1.metrics.mean_iou(labels, classes, 2, real),
        "mean": tf1.metrics.mean(probabilities, real),
        "own_count": own_count(real),
        "precision": precision,
        "true_positives": tf1.metrics.true_positives(labels, classes, real),
    }


def model_fn(features, labels, mode, params):
    del params
    probabilities, real = features["p"], features["real"]
    eval_metrics = (metric_fn, [labels, probabilities, real])
    return tpu.TPUEstimatorSpec(mode, loss=tf.reduce_mean(probabilities), eval_metrics=eval_metrics)


def input_of(padding, weight_of_padding=0):
    features = {
        "p": np.pad(PROBABILITIES, [0, padding], constant_values=0.9),
        "real": np.pad(np.ones(SIZE, np.float32), [0, padding], constant_values=weight_of_padding),
    }
    labels = np.pad(LABELS, [0, padding])

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices((features, labels))
        return dataset.batch(params["batch_size"], drop_remainder=padding > 0)

    return input_fn


def evaluated(model_dir, cores, input_fn=None, pipeline="PER_HOST_V1"):
    """Evaluates on the host (cores 0, an uneven last batch) or on cores (a padded one)."""
    model = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(
            model_dir=model_dir,
            tpu_config=tpu.TPUConfig(
                per_host_input_for_training=getattr(tpu.InputPipelineConfig, pipeline)
            ),
        ),
        use_tpu=cores > 0,
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
    )
    input_fn = input_fn or input_of(padding=BATCHES * BATCH - SIZE if cores else 0)
    return model.evaluate(input_fn, steps=BATCHES if cores else None)


def by_hand():
    hits = float(np.sum(LABELS * CLASSES))
    precision, recall = hits / np.sum(CLASSES), hits / np.sum(LABELS)
    negatives = float(np.sum((1 - LABELS) * (1 - CLASSES)))
    wrong = SIZE - hits - negatives
    auc = keras_metric_for("auc")  # held against the function itself in test_metrics_parity
    auc.update_state(LABELS, PROBABILITIES)
    return {
        "accuracy": np.mean(LABELS == CLASSES),
        "auc": float(auc.result()),
        "f1": 2 * precision * recall / (precision + recall),
        "hits": np.sum(LABELS == CLASSES),
        "iou": (hits / (hits + wrong) + negatives / (negatives + wrong)) / 2,
        "mean": np.mean(PROBABILITIES),
        "own_count": SIZE,
        "precision": precision,
        "true_positives": hits,
    }


def wrong_metrics(results):
    expected = by_hand()
    assert results.keys() == {*expected, "loss", "global_step"}
    return {name for name in expected if results[name] != pytest.approx(expected[name], rel=1e-6)}


@pytest.mark.parametrize("cores", [0, 1, 2, 8])
def test_every_real_example_counts_once(model_dir, emulated_cores, cores):
    emulated_cores(cores)
    assert wrong_metrics(evaluated(model_dir, cores)) == set()


@pytest.mark.parametrize("pipeline", ["BROADCAST", "PER_HOST_V2"])
def test_every_real_example_counts_once_on_two_hosts(model_dir, emulated_cores, pipeline):
    """Each host has a pipeline of its own: PER_HOST_V2 gives it every other batch of a core."""
    emulated_cores(4, 2)
    calls = []

    def input_fn(params):
        context = params["context"]
        calls.append(context.current_host)
        dataset = input_of(padding=BATCHES * BATCH - SIZE)(params)
        return dataset.shard(2, context.current_host) if pipeline == "PER_HOST_V2" else dataset

    assert wrong_metrics(evaluated(model_dir, 4, input_fn, pipeline)) == set()
    assert calls == ([0, 1] if pipeline == "PER_HOST_V2" else [0])


def test_one_and_eight_cores_are_equal(tmp_path, emulated_cores):
    emulated_cores(1)
    one = evaluated(str(tmp_path / "one"), 1)
    emulated_cores(8)
    eight = evaluated(str(tmp_path / "eight"), 8)
    # The metrics to the last bit: they are updated with the same batches.
    assert eight.pop("loss") == pytest.approx(one.pop("loss"), rel=1e-6)
    assert eight == one


# --- The mutations.


def mean_of_parts(num_parts, metric_fn=metric_fn):
    """A metric_fn that gives the mean of what each core's examples alone would give."""

    def metric_fn_in_parts(*tensors):
        parts = []
        for i, part in enumerate(zip(*(tf.split(t, num_parts) for t in tensors), strict=True)):
            with tf1.variable_scope(f"part_{i}"):
                parts.append(metric_fn(*part))
        return {
            name: (
                tf.add_n([tf.cast(part[name][0], tf.float32) for part in parts]) / num_parts,
                tf.group(*(part[name][1] for part in parts)),
            )
            for name in ("accuracy", "auc", "mean", "true_positives")
        }

    return metric_fn_in_parts


def test_a_mean_of_replicas_would_be_seen(model_dir, emulated_cores, monkeypatch):
    emulated_cores(8)
    monkeypatch.setitem(globals(), "metric_fn", mean_of_parts(8))
    expected, results = by_hand(), evaluated(model_dir, 8)
    for name in ("accuracy", "auc", "mean", "true_positives"):
        assert results[name] != pytest.approx(expected[name], rel=1e-6), name


@pytest.mark.parametrize("cores", [0, 8])
def test_a_dropped_last_batch_would_be_seen(model_dir, emulated_cores, monkeypatch, cores):
    emulated_cores(cores)
    original = input_fn.iterate
    monkeypatch.setattr(input_fn, "iterate", lambda dataset: original(dataset.take(BATCHES - 1)))
    assert wrong_metrics(evaluated(model_dir, cores)) == set(by_hand())


def test_padding_that_counts_would_be_seen(model_dir, emulated_cores):
    emulated_cores(8)
    padding = BATCHES * BATCH - SIZE
    results = evaluated(model_dir, 8, input_of(padding, weight_of_padding=1))
    assert wrong_metrics(results) == set(by_hand()) - {"hits", "true_positives"}
