"""Cases for `tf.contrib.metrics`: value, update, update with other numbers, value."""

from parity import values


def _pair(tf, name, *args, **kwargs):
    value, update = getattr(tf.contrib.metrics, name)(*args, **kwargs)
    return [{"value": value}, {"update": update}, {"update": update}, {"value": value}]


def _floats(tf, name):
    return tf.constant(values([6], name), tf.float32)


def _bools(tf, name):
    return tf.constant(values([6], name) > 0)


def pearson(tf):
    weights = tf.constant([1.0, 2.0, 1.0, 0.0, 1.0, 0.5])
    return _pair(tf, "streaming_pearson_correlation", _floats(tf, "a"), _floats(tf, "b"), weights)[
        1:
    ]


def covariance(tf):
    return _pair(tf, "streaming_covariance", _floats(tf, "a"), _floats(tf, "b"))


def root_mean_squared_error(tf):
    return _pair(tf, "streaming_root_mean_squared_error", _floats(tf, "a"), _floats(tf, "b"))


def mean_absolute_error(tf):
    return _pair(tf, "streaming_mean_absolute_error", _floats(tf, "a"), _floats(tf, "b"))


def accuracy(tf):
    return _pair(tf, "streaming_accuracy", _bools(tf, "a"), _bools(tf, "b"))


def concat(tf):
    value, update = tf.contrib.metrics.streaming_concat(_floats(tf, "a"), max_size=9)
    return [{"update": update}, {"update": update}, {"value": value}]


def auc(tf):
    return _pair(tf, "streaming_auc", tf.abs(_floats(tf, "a")), _bools(tf, "b"), num_thresholds=5)


def precision(tf):
    return _pair(tf, "streaming_precision", _bools(tf, "a"), _bools(tf, "b"))


def recall(tf):
    return _pair(tf, "streaming_recall", _bools(tf, "a"), _bools(tf, "b"))


def f1(tf):
    return _pair(tf, "f1_score", _bools(tf, "b"), tf.abs(_floats(tf, "a")))


def mean(tf):
    return _pair(tf, "streaming_mean", _floats(tf, "a"))


def kappa(tf):
    labels = tf.constant([0, 1, 2, 1, 0, 2])
    return _pair(tf, "cohen_kappa", labels, tf.constant([0, 2, 2, 1, 1, 2]), 3)


def sparse_at_k(tf):
    scores = tf.constant(values([4, 5], "scores"), tf.float32)
    labels = tf.constant([[0], [3], [2], [1]], tf.int64)
    metrics = tf.contrib.metrics
    pairs = [
        metrics.streaming_sparse_precision_at_k(scores, labels, 2),
        metrics.streaming_sparse_recall_at_k(scores, labels, 2),
        metrics.streaming_sparse_average_precision_at_k(scores, labels, 3),
    ]
    return [{"update": [update for _, update in pairs]}, {"value": [value for value, _ in pairs]}]


def aggregate(tf):
    metrics = tf.contrib.metrics
    names, updates = metrics.aggregate_metric_map(
        {
            "mean": metrics.streaming_mean(_floats(tf, "a")),
            "accuracy": metrics.streaming_accuracy(_bools(tf, "a"), _bools(tf, "b")),
        }
    )
    return [{"updates": list(updates.values())}, dict(names)]


def histogram_auc(tf):
    auc = tf.contrib.metrics.auc_using_histogram
    value, update = auc(_bools(tf, "b"), tf.abs(_floats(tf, "a")), [0.0, 1.0], nbins=10)
    return [{"update": update}, {"value": value}]


def plain_accuracy(tf):
    return {"accuracy": tf.contrib.metrics.accuracy(_bools(tf, "a"), _bools(tf, "b"))}
