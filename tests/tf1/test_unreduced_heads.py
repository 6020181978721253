"""Heads derived from TF 1's see the losses of examples, and add metrics, as in TF 2.15."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf
from estimator2strategy.tf1.python.estimator.canned import head as head_lib

from estimator2strategy.estimator.heads import v1
from tests import legacy_programs
from tests.same import assert_same

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "unreduced_heads.json").read_text())
NONE = tf.compat.v1.losses.Reduction.NONE


@pytest.mark.parametrize("case", GOLDEN)
def test_a_derived_head_trains_and_measures_as_in_tf_2_15(case, tmp_path):
    with legacy_programs.imported("unreduced_heads") as program, tf.Graph().as_default():
        found = program.run_case(case, str(tmp_path))
    assert_same(json.loads(json.dumps(found)), GOLDEN[case], case)


def test_a_class_of_heads_may_leave_losses_unreduced():
    # Squared errors 1 and 4, with weights 0.5 and 2.
    head = head_lib._RegressionHeadWithMeanSquaredErrorLoss(1, "weight", loss_reduction=NONE)
    features = {"weight": tf.constant([[0.5], [2.0]])}
    parts = head.create_loss(features, "train", tf.constant([[1.0], [3.0]]), [[2.0], [5.0]])
    assert parts.training_loss.numpy().tolist() == [[0.5], [8.0]]
    assert parts.unreduced_loss.numpy().tolist() == [[1.0], [4.0]]


@pytest.mark.parametrize(
    "make",
    [
        head_lib._binary_logistic_head_with_sigmoid_cross_entropy_loss,
        lambda **options: head_lib._multi_class_head_with_softmax_cross_entropy_loss(3, **options),
        lambda **options: v1.multi_label_head(3, **options),
        head_lib._regression_head,
    ],
)
@pytest.mark.parametrize("reduction", [NONE, "mean"])
def test_a_maker_of_heads_refuses_to_leave_losses_unreduced(make, reduction):
    with pytest.raises(ValueError, match=f"Invalid loss_reduction: {reduction}"):
        make(loss_reduction=reduction)


def test_an_unreduced_loss_is_no_loss_of_a_spec():
    head = head_lib._RegressionHeadWithMeanSquaredErrorLoss(1, loss_reduction=NONE)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Loss must be scalar, given"):
        head.create_estimator_spec(
            {}, "train", tf.zeros([2, 1]), tf.zeros([2, 1]), None, tf.identity
        )
