"""Evaluation and prediction read a checkpoint without a Saver, where nobody could tell."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.engine.runtime.programs import numbers

tf1 = tf.compat.v1


class Watched(tf1.train.SessionRunHook):
    """A hook of the program, which might use the graph's Saver."""


class Linear:
    """A model of one weight, which keeps the graph of each call."""

    def __init__(self, partitioner=None, own_saver=False):
        self.graphs = []
        self._partitioner, self._own_saver = partitioner, own_saver

    def __call__(self, features, labels, mode):
        self.graphs.append(tf1.get_default_graph())
        with tf1.variable_scope("model", partitioner=self._partitioner):
            weight = tf1.get_variable("weight", [4], initializer=tf1.ones_initializer())
        scaled = features * tf.reduce_sum(tf.convert_to_tensor(weight))
        step = tf1.train.get_global_step()
        parts = list(weight) if self._partitioner else [weight]
        values = np.split(np.float32([1, 2, 3, 4]), len(parts))
        assigned = [part.assign(value) for part, value in zip(parts, values, strict=True)]
        train_op = tf.group(tf1.assign_add(step, 1), *assigned)
        scaffold = tf1.train.Scaffold(saver=tf1.train.Saver()) if self._own_saver else None
        return estimator.EstimatorSpec(
            mode,
            predictions={"scaled": scaled},
            loss=tf.reduce_mean(scaled),
            train_op=train_op,
            scaffold=scaffold,
        )

    @property
    def has_saver(self):
        """True if the last call's graph got the ops of a Saver."""
        return any(op.type == "RestoreV2" for op in self.graphs[-1].get_operations())


def trained(model, model_dir):
    legacy = estimator.Estimator(model, model_dir)
    legacy.train(numbers(1), steps=1)
    return legacy


def prediction(legacy, hooks=None):
    return next(iter(legacy.predict(numbers(1), hooks=hooks)))["scaled"]


def test_predict_and_evaluate_make_no_saver(model_dir):
    model = Linear()
    legacy = trained(model, model_dir)
    assert model.has_saver
    assert prediction(legacy) == 10.0
    assert not model.has_saver
    assert legacy.evaluate(numbers(1), steps=1)["loss"] == 10.0
    assert not model.has_saver


def test_a_hook_of_the_program_finds_the_saver(model_dir):
    model = Linear()
    legacy = trained(model, model_dir)
    assert prediction(legacy, [Watched()]) == 10.0
    assert model.has_saver
    assert legacy.evaluate(numbers(1), steps=1, hooks=[Watched()])["loss"] == 10.0
    assert model.has_saver


IN_PARTS = tf1.fixed_size_partitioner(2)


@pytest.mark.parametrize("options", [{"own_saver": True}, {"partitioner": IN_PARTS}])
def test_what_only_a_saver_knows_is_restored_by_one(options, model_dir):
    model = Linear(**options)
    legacy = trained(model, model_dir)
    assert prediction(legacy) == 10.0
    assert model.has_saver


def test_a_checkpoint_that_lacks_a_variable_ends_as_with_a_saver(model_dir):
    legacy = trained(Linear(), model_dir)

    def grown(features, labels, mode):
        tf1.get_variable("extra", [2])
        return Linear()(features, labels, mode)

    other = estimator.Estimator(grown, legacy.model_dir)
    with pytest.raises(tf.errors.NotFoundError, match=r"missing in the checkpoint: extra"):
        prediction(other)


def test_the_log_names_the_checkpoint(model_dir, caplog):
    legacy = trained(Linear(), model_dir)
    with caplog.at_level("INFO", "tensorflow"):
        prediction(legacy)
    assert f"Restoring parameters from {legacy.latest_checkpoint()}" in caplog.text


def test_values_are_those_of_the_checkpoint_to_the_bit(model_dir):
    legacy = trained(Linear(), model_dir)
    saved = legacy.get_variable_value("model/weight")
    assert prediction(legacy) == np.float32(saved.sum())


def test_the_exported_graph_is_written_without_a_warning(model_dir, caplog):
    legacy = trained(Linear(), model_dir)
    with caplog.at_level("WARNING", "tensorflow"):
        legacy.evaluate(numbers(1), steps=1)
    assert "serializing savers" not in caplog.text
