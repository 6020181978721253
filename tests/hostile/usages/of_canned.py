"""Wrong usages of canned Estimators and of heads."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from estimator2strategy import estimator
from tests.hostile.usages.programs import LABELS, ROWS, columns, input_fn
from tests.hostile.usages.usage import Usage

DNN, Linear = estimator.DNNClassifier, estimator.LinearClassifier
KMeans = estimator.experimental.KMeans


def features_in_dict():
    return tf.data.Dataset.from_tensors(({"x": ROWS}, LABELS)).repeat()


CANNED = (
    Usage("hidden_units is a number", "hidden_units", lambda d: DNN(4, columns(), d)),
    Usage("hidden_units is a string", "hidden_units", lambda d: DNN("4", columns(), d)),
    Usage("hidden_units has a string", "hidden_units", lambda d: DNN(["four"], columns(), d)),
    Usage("hidden_units has 0", "hidden_units", lambda d: DNN([0], columns(), d)),
    Usage(
        "feature_columns is None",
        "feature_columns",
        lambda d: DNN([4], None, d).train(features_in_dict, steps=1),
    ),
    Usage("feature_columns has a name", "feature_columns", lambda d: DNN([4], ["x"], d)),
    Usage("feature_columns is a column", "feature_columns", lambda d: DNN([4], columns()[0], d)),
    Usage(
        "feature_columns is empty",
        "feature_columns",
        lambda d: DNN([4], [], d).train(features_in_dict, steps=1),
    ),
    Usage("n_classes is 1", "n_classes", lambda d: DNN([4], columns(), d, n_classes=1)),
    Usage("n_classes is a string", "n_classes", lambda d: DNN([4], columns(), d, n_classes="3")),
    Usage("n_classes is None", "n_classes", lambda d: Linear(columns(), d, n_classes=None)),
    Usage(
        "weight_column is a number",
        "weight_column",
        lambda d: DNN([4], columns(), d, weight_column=3),
    ),
    Usage(
        "label_vocabulary is a string",
        "label_vocabulary",
        lambda d: DNN([4], columns(), d, label_vocabulary="a,b"),
    ),
    Usage(
        "label_vocabulary is too short",
        "label_vocabulary",
        lambda d: DNN([4], columns(), d, 3, label_vocabulary=["a"]),
        taken="to the original labels may be of the first classes alone",
    ),
    Usage(
        "label_vocabulary is too short, in TF 2",
        "label_vocabulary",
        lambda d: estimator.DNNClassifierV2([4], columns(), d, 3, label_vocabulary=["a"]),
    ),
    Usage("optimizer is a typo", "optimizer", lambda d: DNN([4], columns(), d, optimizer="Adamm")),
    Usage(
        "activation_fn is a number",
        "activation_fn",
        lambda d: DNN([4], columns(), d, activation_fn=1),
    ),
    Usage(
        "hidden_units is an array",
        "hidden_units",
        lambda d: DNN(np.array([4, 2]), columns(), d),
        taken="it is a list to the original",
    ),
    Usage("optimizer is a number", "optimizer", lambda d: DNN([4], columns(), d, optimizer=0.1)),
    Usage("dropout is 2", "dropout", lambda d: DNN([4], columns(), d, dropout=2)),
    Usage("dropout is a string", "dropout", lambda d: DNN([4], columns(), d, dropout="0.5")),
    Usage(
        "activation_fn is a name",
        "activation_fn",
        lambda d: DNN([4], columns(), d, activation_fn="relu"),
        taken="Keras knows the name, in the original, too",
    ),
    Usage(
        "batch_norm is 'False'", "batch_norm", lambda d: DNN([4], columns(), d, batch_norm="False")
    ),
    Usage(
        "loss_reduction is a typo",
        "loss_reduction",
        lambda d: DNN([4], columns(), d, loss_reduction="mean"),
    ),
    Usage("config is a dict", "config", lambda d: DNN([4], columns(), d, config={})),
    Usage("model_dir is a number", "model_dir", lambda d: DNN([4], columns(), 3)),
    Usage(
        "label_dimension is 0",
        "label_dimension",
        lambda d: estimator.DNNRegressor([4], columns(), d, label_dimension=0),
    ),
    Usage(
        "label_dimension is a string",
        "label_dimension",
        lambda d: estimator.LinearRegressor(columns(), d, label_dimension="1"),
    ),
    Usage("head is None", "head", lambda d: estimator.DNNEstimator(None, [4], columns(), d)),
    Usage("head is a string", "head", lambda d: estimator.LinearEstimator("binary", columns(), d)),
    Usage(
        "sparse_combiner is a typo",
        "sparse_combiner",
        lambda d: Linear(columns(), d, sparse_combiner="average"),
    ),
    Usage(
        "combined: no columns",
        "feature_columns",
        lambda d: estimator.DNNLinearCombinedClassifier(d),
    ),
    Usage(
        "combined: columns without hidden_units",
        "dnn_hidden_units",
        lambda d: estimator.DNNLinearCombinedClassifier(d, dnn_feature_columns=columns()).train(
            features_in_dict, steps=1
        ),
    ),
    Usage(
        "features are no dict",
        "features",
        lambda d: DNN([4], columns(), d).train(input_fn, steps=1),
    ),
    Usage(
        "a feature that there is not",
        "feature_columns",
        lambda d: DNN([4], [tf.feature_column.numeric_column("size")], d).train(
            features_in_dict, steps=1
        ),
    ),
    Usage("num_clusters is a string", "num_clusters", lambda d: KMeans("3", d)),
    Usage("num_clusters is 0", "num_clusters", lambda d: KMeans(0, d)),
    Usage(
        "KMeans: feature_columns is None",
        "feature_columns",
        lambda d: KMeans(3, d, feature_columns=None),
        taken="it is the default, all features",
    ),
    Usage(
        "initial_clusters is a typo",
        "initial_clusters",
        lambda d: KMeans(3, d, initial_clusters="kmeans++"),
    ),
    Usage(
        "distance_metric is a typo", "distance_metric", lambda d: KMeans(3, d, distance_metric="l2")
    ),
    Usage(
        "a keyword that is misspelt",
        "hidden_layers",
        lambda d: DNN(hidden_layers=[4], feature_columns=columns()),
    ),
)

HEADS = (
    Usage("n_classes is 1", "n_classes", lambda d: estimator.MultiClassHead(1)),
    Usage("n_classes is a string", "n_classes", lambda d: estimator.MultiLabelHead("3")),
    Usage("label_dimension is 0", "label_dimension", lambda d: estimator.RegressionHead(0)),
    Usage("weight_column is a number", "weight_column", lambda d: estimator.BinaryClassHead(3)),
    Usage(
        "thresholds is a number", "thresholds", lambda d: estimator.BinaryClassHead(thresholds=0.5)
    ),
    Usage(
        "thresholds are out of range",
        "thresholds",
        lambda d: estimator.BinaryClassHead(thresholds=[2.0]),
    ),
    Usage("loss_fn is a name", "loss_fn", lambda d: estimator.BinaryClassHead(loss_fn="mse")),
    Usage(
        "loss_fn takes others",
        "loss_fn",
        lambda d: estimator.BinaryClassHead(loss_fn=lambda a, b: a),
    ),
    Usage("heads is empty", "heads", lambda d: estimator.MultiHead([])),
    Usage("heads has a string", "heads", lambda d: estimator.MultiHead(["a"])),
    Usage(
        "head_weights is too short",
        "head_weights",
        lambda d: estimator.MultiHead(
            [estimator.BinaryClassHead(name="a"), estimator.BinaryClassHead(name="b")], [1.0]
        ),
    ),
)

TABLES = {"canned Estimators": CANNED, "heads": HEADS}
