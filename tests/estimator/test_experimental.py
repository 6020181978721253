"""`call_logit_fn`: what it passes on, and what it takes back."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.estimator import experimental

FEATURES = {"x": tf.constant([1.0])}


def test_a_logit_fn_gets_what_it_asks_for():
    def logit_fn(features, params, mode):
        return features["x"] * params["factor"] if mode == "train" else None

    logits = experimental.call_logit_fn(logit_fn, FEATURES, "train", {"factor": 2.0}, "config")
    assert logits.numpy().tolist() == [2.0]


def test_logits_may_come_in_a_dict():
    logits = experimental.call_logit_fn(lambda features: features, FEATURES, "eval", {}, None)
    assert logits is FEATURES


@pytest.mark.parametrize("result", [[tf.constant(1.0)], {"x": "text"}, {1: tf.constant(1.0)}])
def test_anything_else_is_refused(result):
    with pytest.raises(ValueError, match=r"dictionary mapping strings to Tensors.*lambda"):
        experimental.call_logit_fn(lambda features: result, FEATURES, "eval", {}, None)
