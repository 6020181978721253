"""Heads do what those of TF 2.15 and of `tf.contrib.estimator` 1.15 did."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.names import name_table
from estimator2strategy.estimator.heads import base, v1
from tests.same import assert_same

tf1 = tf.compat.v1
TESTS = Path(__file__).resolve().parent.parent
GOLDEN = json.loads((TESTS / "goldens" / "heads.json").read_text())


def _program() -> Any:
    spec = importlib.util.spec_from_file_location("heads", TESTS / "programs" / "heads.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = _program()
# The cases of v1 are those of v2, by other makers of the same heads; CI runs them, too.
CASES = [
    pytest.param(version, case, marks=[pytest.mark.slow] if version == "v1" else [])
    for version in GOLDEN
    for case in GOLDEN[version]
]


@pytest.mark.parametrize(("version", "case"), CASES)
def test_a_model_trains_evaluates_predicts_and_is_served_as_the_original(version, case, tmp_path):
    found = program.run(case, str(tmp_path), version)
    assert_same(json.loads(json.dumps(found)), GOLDEN[version][case], case)


# --- Outside of an Estimator; numbers by hand.

LOGITS, LABELS = [[45.0], [-41.0]], [[1], [1]]


@pytest.mark.oldest
def test_losses_and_metrics_work_eagerly():
    head = estimator.BinaryClassHead(thresholds=[0.5])
    logits = tf.constant(LOGITS)
    # Losses 0 and 41, one of two right, and both labels are 1.
    assert head.loss(LABELS, logits, {}).numpy() == pytest.approx(20.5)
    metrics = head.update_metrics(head.metrics(), {}, logits, LABELS)
    values = {name: float(metric.result()) for name, metric in metrics.items()}
    assert values["average_loss"] == pytest.approx(20.5)
    assert (values["accuracy"], values["precision"], values["recall"]) == (0.5, 1.0, 0.5)
    assert values["accuracy/positive_threshold_0.5"] == 0.5
    assert values["accuracy_baseline"] == values["label/mean"] == 1.0


def test_regularization_losses_are_added_and_measured():
    head = estimator.RegressionHead(loss_reduction="sum", name="cost")
    logits, added = tf.constant([[1.0], [3.0]]), [tf.constant(0.5), tf.constant(0.25)]
    assert head.loss([[2.0], [5.0]], logits, {}, None, added).numpy() == 1.0 + 4.0 + 0.75
    metrics = head.metrics(added)
    head.update_metrics(metrics, {}, logits, [[2.0], [5.0]], regularization_losses=added)
    assert float(metrics["regularization_loss/cost"].result()) == 0.75
    assert float(metrics["label/mean/cost"].result()) == 3.5


@pytest.mark.parametrize(
    "head",
    [
        estimator.BinaryClassHead(),
        estimator.MultiClassHead(3),
        estimator.MultiLabelHead(3),
        estimator.RegressionHead(inverse_link_fn=tf.exp),
    ],
    ids=lambda head: type(head).__name__,
)
def test_keys_choose_predictions(head):
    logits = tf.zeros([2, head.logits_dimension])
    everything = head.predictions(logits)
    assert len(everything) > 1
    assert set(head.predictions(logits, ["logits"])) == {"logits"}
    with pytest.raises(ValueError, match=r"must be in PredictionKeys, given: top_k"):
        head.predictions(logits, ["top_k"])


def test_weights_count_for_examples_or_for_their_values():
    features = {"weight": tf.constant([[1.0], [3.0]]), "weights": tf.constant([[1.0, 0], [0, 3.0]])}
    logits, labels = tf.constant([[1.0, 1.0], [2.0, 2.0]]), tf.zeros([2, 2])

    def loss(column):
        head = estimator.RegressionHead(2, column, "sum")
        return head.loss(labels, logits, features).numpy()

    assert loss(None) == 1 + 1 + 4 + 4
    assert loss("weight") == 1 + 1 + 3 * 4 + 3 * 4
    assert loss(tf.feature_column.numeric_column("weights", shape=(2,))) == 1 + 3 * 4
    with pytest.raises(TypeError, match="must be either a string or NumericColumn"):
        loss(1)
    with pytest.raises(ValueError, match="weights shape must be"):
        estimator.MultiClassHead(3, "weights").loss([0, 1], tf.zeros([2, 3]), features)


# --- Train ops.


def trained(train_arguments, head=None):
    """The loss and a weight of 1.0 before and after a step, and the global step."""
    head = head or estimator.RegressionHead()
    with tf.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.create_global_step()
        weight = tf1.get_variable("weight", initializer=[[1.0]], use_resource=True)
        logits = tf.matmul([[2.0]], weight)
        arguments = train_arguments(weight)
        spec = head.create_estimator_spec(
            {"x": [[2.0]]}, estimator.ModeKeys.TRAIN, logits, tf.constant([[4.0]]), **arguments
        )
        session.run(tf1.global_variables_initializer())
        before = session.run([spec.loss, weight])
        session.run(spec.train_op)
        return [float(np.squeeze(value)) for value in (*before, *session.run([weight, step]))]


@pytest.mark.oldest
def test_every_kind_of_optimizer_trains():
    import tf_keras

    sgd = tf1.train.GradientDescentOptimizer(0.125)
    # (2w - 4)^2 has the gradient -8 at 1; the step of 0.125 leads to 2.
    expected = [4.0, 1.0, 2.0, 1.0]
    assert trained(lambda weight: {"optimizer": sgd}) == expected
    assert trained(lambda weight: {"optimizer": sgd}, v1.regression_head()) == expected
    minimized = {"train_op_fn": lambda loss: sgd.minimize(loss, tf1.train.get_global_step())}
    assert trained(lambda weight: minimized) == expected

    def legacy_keras(weight):
        optimizer = tf_keras.optimizers.legacy.SGD(0.125)
        optimizer.iterations = tf1.train.get_global_step()
        return {"optimizer": optimizer, "trainable_variables": [weight]}

    assert trained(legacy_keras) == expected


@pytest.mark.parametrize("collected", [True, False])
def test_update_ops_run_with_each_step(collected):
    def arguments(weight):
        update = tf1.train.get_global_step().assign_add(10)
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update) if collected else None
        train = {"optimizer": tf1.train.GradientDescentOptimizer(0.0)}
        return train if collected else {**train, "update_ops": [update]}

    assert trained(arguments)[-1] == 11.0
    if collected:
        assert trained(arguments, v1.regression_head())[-1] == 11.0


def test_a_train_op_needs_one_optimizer_that_works_in_a_graph():
    import keras

    optimizer, function = tf1.train.GradientDescentOptimizer(0.1), lambda loss: tf.no_op()
    for head in (None, v1.regression_head()):
        with pytest.raises(ValueError, match="cannot both be None"):
            trained(lambda weight: {}, head)
        with pytest.raises(ValueError, match="cannot both be set"):
            trained(lambda weight: {"optimizer": optimizer, "train_op_fn": function}, head)
    with pytest.raises(ValueError, match=r"is not a tf_keras\.optimizers.*optimizers\.legacy"):
        trained(lambda weight: {"optimizer": keras.optimizers.SGD(), "trainable_variables": []})
    with pytest.raises(ValueError, match="update_ops should be a list"):
        trained(lambda weight: {"optimizer": optimizer, "update_ops": tf.no_op()})


def test_legacy_keras_optimizers_must_be_told_the_variables():
    import tf_keras

    for variables, message in ((None, "cannot be None"), ({}, "should be a list")):
        with pytest.raises(ValueError, match=f"trainable_variables {message}"):
            trained(
                lambda weight, given=variables: {
                    "optimizer": tf_keras.optimizers.legacy.SGD(0.1),
                    "trainable_variables": given,
                }
            )


# --- Wrong arguments.


def no_logits(labels):
    return labels


def one_argument_more(labels, logits, params):
    return labels


def one_per_batch(labels, logits):
    return tf.reduce_sum(logits, keepdims=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: estimator.BinaryClassHead(thresholds=[0.5, 1.0]), r"thresholds not in \(0, 1\)"),
        (lambda: estimator.BinaryClassHead(label_vocabulary="ab"), "should be a list or a tuple"),
        (lambda: estimator.BinaryClassHead(loss_reduction="none"), "Invalid loss_reduction: none"),
        (lambda: estimator.BinaryClassHead(loss_fn=no_logits), "must contain argument: logits"),
        (lambda: estimator.RegressionHead(loss_fn=one_argument_more), "unexpected args.*params"),
        (lambda: estimator.RegressionHead(0), "Invalid label_dimension 0"),
        (lambda: estimator.MultiClassHead(2), "n_classes must be > 2: 2"),
        (lambda: estimator.MultiClassHead(None), "n_classes cannot be None"),
        (lambda: estimator.MultiClassHead(3, label_vocabulary=["a"]), r"must be n_classes \(3\)"),
        (lambda: estimator.MultiLabelHead(1), "n_classes must be > 1"),
        (
            lambda: estimator.MultiLabelHead(3, classes_for_class_based_metrics=[3]),
            r"in range \[0, 2\]. Given: 3",
        ),
        (
            lambda: estimator.MultiLabelHead(3, classes_for_class_based_metrics=["a"]),
            "label_vocabulary must be provided",
        ),
        (lambda: estimator.MultiHead([]), "Must specify heads"),
        (lambda: estimator.MultiHead([estimator.RegressionHead()]), "must have name specified"),
        (
            lambda: estimator.MultiHead([estimator.RegressionHead(name="a")], [1.0, 2.0]),
            "must have the same size",
        ),
        (lambda: v1.regression_head(loss_reduction="sum"), "Invalid loss_reduction: sum"),
    ],
)
def test_arguments_are_checked_when_a_head_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_labels_and_logits_must_fit_the_head():
    head = estimator.MultiClassHead(3)
    logits = tf.zeros([2, 3])
    with pytest.raises(ValueError, match="must provide a labels Tensor"):
        head.loss(None, logits, {})
    with pytest.raises(ValueError, match="SparseTensor labels are not supported"):
        head.loss(tf.sparse.from_dense([[1], [2]]), logits, {})
    with pytest.raises(ValueError, match=r"Mismatched label shape.*dimension=1.*Received 3"):
        head.loss(tf.ones([2, 3], tf.int32), logits, {})
    with pytest.raises(ValueError, match="Labels dtype should be integer"):
        head.loss([0.0, 1.0], logits, {})
    with pytest.raises(ValueError, match="Labels must be <= 3 - 1"):
        head.loss([0, 3], logits, {})
    with pytest.raises(ValueError, match="Labels must be >= 0"):
        head.loss([0, -1], logits, {})
    with pytest.raises(ValueError, match=r"logits shape must be.*logits_dimension=3"):
        head.loss([0, 1], tf.zeros([2, 2]), {})
    with pytest.raises(ValueError, match="loss_fn must return Tensor of shape"):
        estimator.RegressionHead(loss_fn=one_per_batch).loss([[0.0]] * 2, tf.zeros([2, 1]), {})


@pytest.mark.parametrize(
    ("labels", "logits", "message"),
    [
        ([[1]], [[0.0] * 3] * 2, "labels shape must be"),
        ([[3]], [[0.0] * 3], "Labels must be <= n_classes - 1"),
        ([[1]], [[0.0] * 2], "logits shape must be"),
    ],
)
def test_what_a_graph_cannot_know_is_checked_while_it_runs(labels, logits, message):
    with tf.Graph().as_default(), tf1.Session() as session:
        fed = tf1.placeholder(tf.int32), tf1.placeholder(tf.float32)
        loss = estimator.MultiClassHead(3).loss(*fed, {})
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(loss, dict(zip(fed, (labels, logits), strict=True)))


def test_a_multi_head_wants_everything_by_name():
    heads = [estimator.RegressionHead(name="a"), estimator.RegressionHead(2, name="b")]
    head = estimator.MultiHead(heads)
    assert (head.name, head.logits_dimension, head.loss_reduction) == (
        "a_b",
        3,
        "sum_over_batch_size",
    )
    labels = {"a": tf.zeros([1, 1]), "b": tf.zeros([1, 2])}
    assert head.loss(labels, tf.constant([[1.0, 2.0, 4.0]]), {}).numpy() == 1.0 + (4 + 16) / 2
    with pytest.raises(ValueError, match="labels must be a dict"):
        head.loss([0.0], tf.zeros([1, 3]), {})
    with pytest.raises(ValueError, match=r"labels has missing values for head\(s\): \['b'\]"):
        head.loss({"a": [[0.0]]}, tf.zeros([1, 3]), {})
    with pytest.raises(ValueError, match=r"logits has missing values for head\(s\): \['a'\]"):
        head.loss(labels, {"b": tf.zeros([1, 2])}, {})
    with pytest.raises(ValueError, match="Could not split logits of shape"):
        head.loss(labels, tf.zeros([1, 4]), {})
    other = estimator.RegressionHead(loss_reduction="sum", name="c")
    with pytest.raises(ValueError, match="loss_reduction must be the same"):
        _ = estimator.MultiHead([*heads, other]).loss_reduction
    with pytest.raises(ValueError, match="unrecognized"):
        head.create_estimator_spec({}, "guess", tf.zeros([1, 3]), labels)


class OwnHead(estimator.Head):
    """A program's own head, which says nothing but its names."""

    name = "own"
    logits_dimension = 1
    loss_reduction = "sum"

    def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        return tf.reduce_sum(logits)

    def predictions(self, logits, keys=None):
        return {"logits": logits}

    def metrics(self, regularization_losses=None):
        return {}

    def update_metrics(
        self, eval_metrics, features, logits, labels, mode=None, regularization_losses=None
    ):
        return eval_metrics


def test_a_head_of_a_program_must_make_its_spec():
    with pytest.raises(NotImplementedError, match=r"must implement `create_estimator_spec\(\)`"):
        OwnHead().create_estimator_spec({}, "eval", tf.zeros([1, 1]), [[0.0]])
    with pytest.raises(TypeError, match="abstract"):
        estimator.Head()


def test_tensors_of_eval_metrics_are_told_from_the_rest():
    with tf.Graph().as_default():
        one = tf.constant(1.0)
        function, tensors = base.create_eval_metrics_tuple(
            lambda x, y, z: (x, y, z), {"x": one, "y": 2, "z": None}
        )
        assert tensors == {"x": one}
        assert function(x=3) == (3, 2, None)


@pytest.mark.parametrize(
    ("path", "is_this"),
    [
        ("head.base_head.check_logits_final_dim", "heads.head_checks:check_logits_final_dim"),
        ("head.base_head.classification_output", "heads.base:classification_output"),
        ("head.base_head.DEFAULT_SERVING_KEY", "heads.keys:DEFAULT_SERVING_KEY"),
        ("head.binary_class_head.BinaryClassHead", "heads.BinaryClassHead"),
        ("canned.metric_keys.MetricKeys", "heads.keys:MetricKeys"),
    ],
)
def test_programs_find_them_where_they_were(path, is_this):
    found = name_table.find(f"tensorflow_estimator.python.estimator.{path}")
    module, _, name = found.home.partition(":")
    expected, _, attribute = f"estimator2strategy.estimator.{is_this}".rpartition(
        ":" if ":" in is_this else "."
    )
    assert found.status != "refused"
    assert getattr(importlib.import_module(module), name) is getattr(
        importlib.import_module(expected), attribute
    )
