"""Recurrent canned Estimators do what those of TF 1.15 and of TF 2.15 did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy import estimator
from estimator2strategy.estimator.heads.sequential import SequentialHeadWrapper
from tests.programs import recurrent
from tests.same import assert_same

GOLDEN = json.loads((Path(__file__).parents[2] / "goldens" / "recurrent.json").read_text())
CASES = [
    pytest.param(
        version, case, marks=pytest.mark.oldest if case == "two classes" else pytest.mark.slow
    )
    for version in GOLDEN
    for case in GOLDEN[version]
]
# TF 1.15 saved slots under the names of a partition.
SLOTS = ("Adagrad", "Adam", "RMSProp", "beta")


@pytest.mark.parametrize(("version", "case"), CASES)
def test_a_network_trains_evaluates_and_predicts_as_the_original(version, case):
    found = recurrent.run(tf if version == "v2" else tf1, version, case)
    expected = GOLDEN[version][case]
    for values in (found, expected):
        if version == "contrib":
            values["variables"] = {
                name: value
                for name, value in values["variables"].items()
                if not any(slot in name for slot in SLOTS)
            }
    if version == "learn":  # which had no curve of the loss
        found["summaries"].remove("loss")
    assert_same(found, expected, case)


WORDS = tf1.contrib.feature_column.sequence_numeric_column("numbers")
COLUMN = tf.feature_column.sequence_numeric_column("numbers")
EACH_STEP = SequentialHeadWrapper(estimator.BinaryClassHead(), "mask", "weights")


def of_steps():
    """An input_fn with a label for each step, of which the later ones are padding."""
    features = {"numbers": recurrent.features(tf1)["numbers"]}
    features["weights"] = tf.ones([recurrent.N, recurrent.LONGEST])
    return features, tf.constant(recurrent.EACH_STEP % 2)


@pytest.mark.parametrize(
    ("make", "column"),
    [
        (tf1.contrib.estimator.RNNEstimator, WORDS),
        (estimator.experimental.RNNEstimator, COLUMN),
    ],
)
def test_steps_that_are_padding_are_in_no_loss_and_no_metric(make, column, model_dir):
    sizes = {"num_units": [3]} if make is tf1.contrib.estimator.RNNEstimator else {"units": [3]}
    model = make(EACH_STEP, [column], return_sequences=True, model_dir=model_dir, **sizes)
    model.train(of_steps, steps=2)
    labels = [recurrent.EACH_STEP[i, j] % 2 for i, j in recurrent.PLACES]
    results = model.evaluate(of_steps, steps=1)
    assert results["label/mean"] == pytest.approx(sum(labels) / len(labels))
    predicted = next(model.predict(of_steps, yield_single_examples=False))
    assert predicted["mask"].sum() == len(labels)
    assert predicted["classes"].shape == (recurrent.N, recurrent.LONGEST, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tf1.contrib.estimator.RNNClassifier([WORDS], None, [2], "lstm", lambda mode: 0),
            "must not be specified when using rnn_cell_fn",
        ),
        (
            lambda: tf1.contrib.estimator.RNNClassifier([WORDS], cell_type="lstm"),
            "sizes of the layers .* are missing",
        ),
        (
            lambda: tf1.contrib.estimator.RNNClassifier([WORDS], None, [2], "lstn"),
            r"Supported cell types are \['basic_rnn', 'lstm', 'gru'\]; got lstn",
        ),
        (
            lambda: estimator.experimental.RNNClassifier([COLUMN], None, [2], rnn_cell_fn=list),
            "must not be specified when using rnn_cell_fn",
        ),
        (
            lambda: estimator.experimental.RNNEstimator(
                estimator.BinaryClassHead(), [COLUMN], units=[2], return_sequences=True
            ),
            "head must be a `_SequentialHead` object",
        ),
        (
            lambda: tf1.contrib.learn.DynamicRnnEstimator(1, 3, [], num_classes=2),
            "prediction_type must be one of",
        ),
        (lambda: tf1.contrib.learn.DynamicRnnEstimator(1, 1, []), "num_classes must be specified"),
        (
            lambda: tf1.contrib.learn.DynamicRnnEstimator(2, 1, [], predict_probabilities=True),
            "predict_probabilities can only be set to True",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused_at_once(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_head_of_steps_names_what_is_missing():
    logits = tf.zeros([2, 3, 1])
    labels = tf.zeros([2, 3], tf.int64)
    mask = tf.ones([2, 3], tf.bool)
    for features, message in [
        ({}, "sequence_length_mask key `mask` should be included"),
        ({"mask": mask[0]}, "Mask is expected to have two dimensions, got 1"),
        ({"mask": mask}, "`weights` column expected in features"),
    ]:
        with pytest.raises(ValueError, match=message):
            EACH_STEP.loss(labels, logits, features)


def test_a_network_starts_at_the_state_that_features_hold(model_dir):
    """And predictions hold the state that is left."""
    model = tf1.contrib.learn.DynamicRnnEstimator(
        2,
        1,
        [tf1.contrib.layers.real_valued_column("steps", 2)],
        None,
        None,
        [3],
        "lstm",
        model_dir=model_dir,
    )

    def input_fn():
        return recurrent.padded_features(tf1), tf.constant(recurrent.REALS)

    model.fit(input_fn=input_fn, steps=1)
    first = list(model.predict(input_fn=input_fn))
    states = [f"rnn_cell_state_{i}" for i in range(2)]

    def going_on():
        features, labels = input_fn()
        features.update({name: tf.stack([one[name] for one in first]) for name in states})
        return features, labels

    again = list(model.predict(input_fn=going_on))
    assert again[3]["scores"] != first[3]["scores"]

    def half():
        features, labels = going_on()
        del features[states[1]]
        return features, labels

    with pytest.raises(ValueError, match="Expected zero or 2 state Tensors; got 1"):
        list(model.predict(input_fn=half))
