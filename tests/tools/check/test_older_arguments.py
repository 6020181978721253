"""Calls with the arguments of a TensorFlow before 1.0."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings, Target


def found(line, target=Target.FACADE):
    text = f"import tensorflow as tf\n\na = tf.placeholder(tf.float32, [2, 4])\n{line}\n"
    findings = check_text(text, Settings(target=target)).findings
    return [f.message for f in findings if f.rule == "E2S115"]


@pytest.mark.parametrize(
    "line",
    [
        "tf.concat(1, [a, a])",
        "tf.concat(-1, a)",
        "tf.concat(concat_dim=1, values=[a, a])",
        "tf.split(0, 2, a)",
        "tf.split(split_dim=0, num_split=2, value=a)",
        "tf.SparseTensor(indices=[[0, 0]], values=[1], shape=[1, 1])",
        "tf.nn.softmax_cross_entropy_with_logits(a, a)",
        "tf.nn.sigmoid_cross_entropy_with_logits(a, labels=a)",
    ],
)
def test_arguments_of_before_1_0_are_found(line):
    assert len(found(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "tf.concat([a, a], 1)",
        "tf.concat(axis=1, values=[a, a])",
        "tf.split(a, 2, 0)",
        "tf.split(7, 1)",
        "tf.nn.softmax_cross_entropy_with_logits(labels=a, logits=a)",
        "tf.nn.sigmoid_cross_entropy_with_logits(None, a, a)",
        "tf.nn.softmax_cross_entropy_with_logits_v2(a, a)",
        "tf.compat.v2.nn.softmax_cross_entropy_with_logits(a, a)",
        "try:\n    tf.concat(1, [a, a])\nexcept TypeError:\n    tf.concat([a, a], 1)",
    ],
)
def test_arguments_of_today_are_no_finding(line):
    assert found(line) == []


def test_tensorflow_2_takes_cross_entropies_by_position():
    assert found("tf.nn.softmax_cross_entropy_with_logits(a, a)", Target.TF2) == []
    assert len(found("tf.concat(1, [a, a])", Target.TF2)) == 1
