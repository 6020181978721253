"""The table of what Keras has in place of TensorFlow 1's training parts.

    for row in rows():
        print(row.legacy, "->", row.keras3)

A row's texts are Python expressions. tests/goldens/replacements/record.py evaluates `legacy` on
TensorFlow 1.15, and `python -m benchmarks.replacements` the others here, both on the inputs of
`replacement_inputs.py`. The script loads these two files under Python 3.7.
"""

from __future__ import annotations

import dataclasses
import pathlib

# Written by `benchmarks/replacements.py`.
MEASURED = pathlib.Path(__file__).with_name("replacements.json")


@dataclasses.dataclass(frozen=True)
class Replacement:
    """A name of TF 1.15, and what may take its place.

    Attributes:
        kind: The part of the table; "optimizer", or a key of INPUTS.
        legacy: The expression in TF 1.15.
        keras3: The nearest in Keras 3; "" for none.
        keras2: The nearest in tf-keras, for use in a model_fn.
        written: An expression that is equal in all situations, where `keras3` is not. For an
            optimizer it is a class of examples/tf1_optimizers.py, for a layer of tf1_layers.py.
        values: The arguments of a metric's `update_state`.
    """

    kind: str
    legacy: str
    keras3: str = ""
    keras2: str = ""
    written: str = ""
    values: str = ""


def rows():
    """All rows, in the order of the page."""
    return _OPTIMIZERS + _SCHEDULES + _LOSSES + _LAYERS + _COLUMNS + _METRICS


def _optimizer(legacy, keras="", written="", keras2=None):
    keras3 = f"keras.optimizers.{keras}" if keras else ""
    if keras2 is None:
        keras2 = f"tf.{keras3}" if keras else ""
    return Replacement("optimizer", legacy, keras3, keras2, written)


_OPTIMIZERS = (
    _optimizer("tf.train.GradientDescentOptimizer(rate)", "SGD(rate)"),
    _optimizer(
        "tf.train.MomentumOptimizer(rate, 0.9)", "SGD(rate, 0.9)", written="Momentum(rate, 0.9)"
    ),
    _optimizer(
        "tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)",
        "SGD(rate, 0.9, nesterov=True)",
        written="Momentum(rate, 0.9, nesterov=True)",
    ),
    _optimizer("tf.train.AdamOptimizer(rate)", "Adam(rate, epsilon=1e-8)", written="Adam(rate)"),
    _optimizer(
        "tf.train.AdagradOptimizer(rate)",
        "Adagrad(rate, initial_accumulator_value=0.1, epsilon=0.0)",
        written="Adagrad(rate)",
    ),
    _optimizer("tf.train.AdagradDAOptimizer(rate, step)", written="AdagradDA(rate)"),
    _optimizer(
        "tf.train.AdadeltaOptimizer(rate)",
        "Adadelta(rate, rho=0.95, epsilon=1e-8)",
        written="Adadelta(rate)",
    ),
    _optimizer(
        "tf.train.RMSPropOptimizer(rate)",
        "RMSprop(rate, rho=0.9, epsilon=1e-10)",
        written="RMSProp(rate)",
    ),
    _optimizer(
        "tf.train.RMSPropOptimizer(rate, momentum=0.9)",
        "RMSprop(rate, rho=0.9, momentum=0.9, epsilon=1e-10)",
        written="RMSProp(rate, momentum=0.9)",
    ),
    _optimizer(
        "tf.train.RMSPropOptimizer(rate, centered=True)",
        "RMSprop(rate, rho=0.9, epsilon=1e-10, centered=True)",
        written="RMSProp(rate, centered=True)",
    ),
    _optimizer("tf.train.FtrlOptimizer(rate)", "Ftrl(rate)", written="Ftrl(rate)"),
    _optimizer(
        "tf.train.FtrlOptimizer(rate, l1_regularization_strength=0.1, "
        "l2_regularization_strength=0.2)",
        "Ftrl(rate, l1_regularization_strength=0.1, l2_regularization_strength=0.2)",
        written="Ftrl(rate, l1=0.1, l2=0.2)",
    ),
    _optimizer(
        "tf.train.FtrlOptimizer(rate, l1_regularization_strength=0.1, "
        "l2_shrinkage_regularization_strength=0.3)",
        "Ftrl(rate, l1_regularization_strength=0.1, l2_shrinkage_regularization_strength=0.3)",
        written="Ftrl(rate, l1=0.1, l2_shrinkage=0.3)",
    ),
    _optimizer(
        "tf.train.ProximalGradientDescentOptimizer(rate, l1_regularization_strength=0.1, "
        "l2_regularization_strength=0.2)",
        written="ProximalGradientDescent(rate, l1=0.1, l2=0.2)",
    ),
    _optimizer(
        "tf.train.ProximalAdagradOptimizer(rate, l1_regularization_strength=0.1, "
        "l2_regularization_strength=0.2)",
        written="ProximalAdagrad(rate, l1=0.1, l2=0.2)",
    ),
    _optimizer(
        "tf.contrib.opt.AdamWOptimizer(0.01, rate)",
        "AdamW(rate, weight_decay=0.01 / rate, epsilon=1e-8)",
        written="AdamW(0.01, rate)",
        keras2="",
    ),
    _optimizer(
        "tf.contrib.opt.MomentumWOptimizer(0.01, rate, 0.9)",
        "SGD(rate, 0.9, weight_decay=0.01 / rate)",
        written="MomentumW(0.01, rate, 0.9)",
        keras2="",
    ),
    _optimizer(
        "tf.contrib.opt.NadamOptimizer(rate)", "Nadam(rate, epsilon=1e-8)", written="Nadam(rate)"
    ),
    _optimizer(
        "tf.contrib.opt.LazyAdamOptimizer(rate)",
        "Adam(rate, epsilon=1e-8)",
        written="LazyAdam(rate)",
    ),
    _optimizer(
        "tf.contrib.opt.AdaMaxOptimizer(rate)",
        "Adamax(rate, epsilon=1e-8)",
        written="AdaMax(rate)",
    ),
    _optimizer(
        "tf.contrib.opt.LARSOptimizer(rate)",
        written="LARS(rate)",
    ),
    _optimizer(
        "tf.contrib.opt.AddSignOptimizer(rate)", "Lion(rate)", written="AddSign(rate)", keras2=""
    ),
    _optimizer(
        "tf.contrib.opt.PowerSignOptimizer(rate)",
        "Lion(rate)",
        written="PowerSign(rate)",
        keras2="",
    ),
)


def _schedule(legacy, keras=""):
    keras3 = f"keras.optimizers.schedules.{keras}(step)" if keras else ""
    keras2 = f"tf.{keras3}" if keras else ""
    written = "" if keras else f"tf.compat.v1.train.{legacy}()"
    return Replacement("schedule", f"tf.train.{legacy}", keras3, keras2, written)


_SCHEDULES = (
    _schedule("exponential_decay(0.1, step, 10, 0.5)", "ExponentialDecay(0.1, 10, 0.5)"),
    _schedule(
        "exponential_decay(0.1, step, 10, 0.5, staircase=True)",
        "ExponentialDecay(0.1, 10, 0.5, staircase=True)",
    ),
    _schedule(
        "natural_exp_decay(0.1, step, 10, 0.5)",
        "ExponentialDecay(0.1, 10, math.exp(-0.5))",
    ),
    _schedule(
        "natural_exp_decay(0.1, step, 10, 0.5, staircase=True)",
        "ExponentialDecay(0.1, 10, math.exp(-0.5), staircase=True)",
    ),
    _schedule("inverse_time_decay(0.1, step, 10, 0.5)", "InverseTimeDecay(0.1, 10, 0.5)"),
    _schedule(
        "inverse_time_decay(0.1, step, 10, 0.5, staircase=True)",
        "InverseTimeDecay(0.1, 10, 0.5, staircase=True)",
    ),
    _schedule("polynomial_decay(0.1, step, 10, power=2.0)", "PolynomialDecay(0.1, 10, power=2.0)"),
    _schedule(
        "polynomial_decay(0.1, step, 10, cycle=True)", "PolynomialDecay(0.1, 10, cycle=True)"
    ),
    _schedule("cosine_decay(0.1, step, 10, alpha=0.1)", "CosineDecay(0.1, 10, alpha=0.1)"),
    _schedule(
        "cosine_decay_restarts(0.1, step, 10, t_mul=2.0, m_mul=0.5)",
        "CosineDecayRestarts(0.1, 10, t_mul=2.0, m_mul=0.5)",
    ),
    _schedule(
        "piecewise_constant(step, [10, 20], [0.1, 0.05, 0.01])",
        "PiecewiseConstantDecay([10, 20], [0.1, 0.05, 0.01])",
    ),
    _schedule("linear_cosine_decay(0.1, step, 10)"),
)


def _loss(function, keras, arguments):
    legacy = f"losses.{function}({arguments}, reduction=reduction)"
    return Replacement(
        "loss", "tf." + legacy, "keras.losses." + keras, written="tf.compat.v1." + legacy
    )


_LOSSES = (
    _loss(
        "mean_squared_error",
        "MeanSquaredError(reduction)(labels, predictions, weights)",
        "labels, predictions, weights",
    ),
    _loss(
        "absolute_difference",
        "MeanAbsoluteError(reduction)(labels, predictions, weights)",
        "labels, predictions, weights",
    ),
    _loss(
        "huber_loss",
        "Huber(reduction=reduction)(labels, predictions, weights)",
        "labels, predictions, weights",
    ),
    _loss(
        "hinge_loss",
        "Hinge(reduction)(labels, predictions, weights)",
        "labels, predictions, weights",
    ),
    _loss(
        "log_loss",
        "BinaryCrossentropy(reduction=reduction)(labels, chances, weights)",
        "labels, chances, weights",
    ),
    _loss(
        "sigmoid_cross_entropy",
        "BinaryCrossentropy(from_logits=True, reduction=reduction)(labels, predictions, weights)",
        "labels, predictions, weights",
    ),
    _loss(
        "softmax_cross_entropy",
        "CategoricalCrossentropy(from_logits=True, reduction=reduction)"
        "(one_hot, logits, row_weights)",
        "one_hot, logits, row_weights",
    ),
    _loss(
        "sparse_softmax_cross_entropy",
        "SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)"
        "(classes, logits, row_weights)",
        "classes, logits, row_weights",
    ),
    _loss(
        "cosine_distance",
        "CosineSimilarity(reduction=reduction)(one_hot, logits, row_weights)",
        "one_hot, logits, 1, weights",
    ),
)


_NORM = "keras.layers.BatchNormalization(momentum=0.0)"
_LAYERS = (
    # For images it is a fused one.
    Replacement(
        "layer",
        "tf.layers.BatchNormalization(momentum=0.0)",
        _NORM,
        "tf." + _NORM,
        "FusedBatchNormalization(momentum=0.0)",
    ),
    Replacement(
        "layer",
        "tf.layers.BatchNormalization(momentum=0.0, fused=False)",
        _NORM,
        "tf.keras.layers.BatchNormalization(momentum=0.0, fused=False)",
    ),
)


def _column(legacy, keras, written=""):
    return Replacement(
        "column", "tf.feature_column." + legacy, "keras.layers." + keras, written=written
    )


_CROSSED_IDS = "tf.feature_column.categorical_column_with_identity('ids', 9)"
_COLUMNS = (
    _column("categorical_column_with_hash_bucket('words', 10)", "Hashing(10)(words)"),
    _column(
        "categorical_column_with_hash_bucket('ids', 10, tf.int64)",
        "Hashing(10)(ids)",
        "tf.where(ids < 0, -1, keras.layers.Hashing(10)(ids))",
    ),
    _column("crossed_column(['words', 'tags'], 100)", "HashedCrossing(100)((words, tags))"),
    _column("crossed_column(['words', 'ids'], 100)", "HashedCrossing(100)((words, ids))"),
    _column(
        f"crossed_column(['words', {_CROSSED_IDS}], 100)",
        "HashedCrossing(100)((words, ids))",
        "tf.where(ids < 0, -1, keras.layers.HashedCrossing(100)((ids, words)))",
    ),
    _column(
        "bucketized_column(tf.feature_column.numeric_column('x'), [0.0, 1.0])",
        "Discretization([0.0, 1.0])(x)",
    ),
    _column(
        "categorical_column_with_vocabulary_list('words', ['red', 'blue'])",
        "StringLookup(vocabulary=['red', 'blue'])(words) - 1",
    ),
    _column(
        "categorical_column_with_vocabulary_list('words', ['red', 'blue'], num_oov_buckets=2)",
        "StringLookup(vocabulary=['red', 'blue'], num_oov_indices=2)(words)",
        "(keras.layers.StringLookup(vocabulary=['red', 'blue'], num_oov_indices=2)(words) - 2) % 4",
    ),
)


def _metric(legacy, keras="", values="", written=""):
    keras3 = f"keras.metrics.{keras}" if keras else ""
    if not values:
        values = legacy[legacy.index("(") + 1 : legacy.index("weights")] + "weights"
    return Replacement(
        "metric", f"tf.metrics.{legacy}", keras3, "tf." + keras3 if keras else "",
        written and f"keras_metric_for({written})", values=values,
    )  # fmt: skip


_BOOLEANS = "tf.cast(labels, tf.bool), tf.cast(scores, tf.bool), weights"
_METRICS = (
    _metric("mean(scores, weights)", "Mean()"),
    _metric("accuracy(classes, guesses, weights)", "Accuracy()"),
    _metric("root_mean_squared_error(targets, scores, weights)", "RootMeanSquaredError()"),
    _metric(
        "mean_squared_error(targets, scores, weights)", "MeanSquaredError()", "targets, scores"
    ),
    _metric(
        "mean_squared_error(targets, scores, weights)",
        "Mean()",
        "tf.math.squared_difference(targets, scores), weights",
    ),
    _metric(
        "mean_absolute_error(targets, scores, weights)", "MeanAbsoluteError()", "targets, scores"
    ),
    _metric(
        "mean_absolute_error(targets, scores, weights)",
        "Mean()",
        "tf.abs(scores - targets), weights",
    ),
    *(
        _metric(f"{function}(labels, scores, weights)", f"{keras}()", values)
        for function, keras in (
            ("precision", "Precision"),
            ("recall", "Recall"),
            ("true_positives", "TruePositives"),
            ("true_negatives", "TrueNegatives"),
            ("false_positives", "FalsePositives"),
            ("false_negatives", "FalseNegatives"),
        )
        for values in ("", _BOOLEANS)
    ),
    _metric(
        "precision_at_thresholds(labels, scores, [0.3, 0.7], weights)",
        "Precision([0.3, 0.7])",
        "labels, scores, weights",
    ),
    _metric(
        "recall_at_thresholds(labels, scores, [0.3, 0.7], weights)",
        "Recall([0.3, 0.7])",
        "labels, scores, weights",
    ),
    _metric("auc(labels, scores, weights)", "AUC()", written="'auc'"),
    _metric(
        "auc(labels, scores, weights, curve='PR')", "AUC(curve='PR')", written="'auc', curve='PR'"
    ),
    _metric(
        "auc(labels, scores, weights, curve='PR', summation_method='careful_interpolation')",
        "AUC(curve='PR')",
    ),
    _metric(
        "sensitivity_at_specificity(labels, scores, 0.7, weights)",
        "SensitivityAtSpecificity(0.7)",
        "labels, scores, weights",
        "'sensitivity_at_specificity', specificity=0.7",
    ),
    _metric(
        "specificity_at_sensitivity(labels, scores, 0.6, weights)",
        "SpecificityAtSensitivity(0.6)",
        "labels, scores, weights",
        "'specificity_at_sensitivity', sensitivity=0.6",
    ),
    _metric(
        "mean_iou(classes, guesses, 3, weights)",
        "MeanIoU(3)",
        "classes, guesses, weights",
        "'mean_iou', num_classes=3",
    ),
    _metric(
        "mean_iou(classes, guesses, 3, weights)",
        "MeanIoU(3, dtype='float32')",
        "classes, guesses, weights",
    ),
    _metric(
        "mean_cosine_distance(one_hot, logits, 1, weights[:, None])",
        "CosineSimilarity()",
        "one_hot, logits, weights[:, None]",
        "'mean_cosine_distance', dim=1",
    ),
    _metric(
        "precision_at_k(classes, logits, 1, weights=weights)",
        "Precision(top_k=1)",
        "one_hot, logits",
    ),
    _metric(
        "precision_at_k(classes, logits, 1, weights=weights)",
        values="classes, logits, weights",
        written="'precision_at_k', k=1",
    ),
    _metric(
        "recall_at_k(classes, logits, 2, weights=weights)", "Recall(top_k=2)", "one_hot, logits"
    ),
    _metric(
        "recall_at_k(classes, logits, 2, weights=weights)",
        values="classes, logits, weights",
        written="'recall_at_k', k=2",
    ),
    _metric(
        "mean_per_class_accuracy(classes, guesses, 3, weights)",
        values="classes, guesses, weights",
        written="'mean_per_class_accuracy', num_classes=3",
    ),
    _metric("percentage_below(scores, 0.5, weights)", "Mean()", "scores < 0.5, weights"),
)
