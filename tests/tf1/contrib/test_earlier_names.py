"""Names that TF 1.15 had lost, and programs of earlier releases use."""

from __future__ import annotations

import pytest
import tensorflow

import estimator2strategy.tf1 as tf
from estimator2strategy.engine.names import name_table
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1 import contrib
from estimator2strategy.tools.check.checking import check_text


def rows():
    both = [*contrib.table().symbols.values(), *name_table.rows().values()]
    return [row for row in both if row.newest]


def test_each_row_names_a_release_that_was_looked_at():
    assert {row.newest for row in rows()} == {*name_table.EARLIER}


def test_datasets_of_contrib_are_those_of_tf_data():
    dataset = tf.contrib.data.Dataset.from_tensor_slices([1, 2, 3])
    assert isinstance(dataset, tf.data.Dataset)
    assert issubclass(tf.contrib.data.TFRecordDataset, tf.data.Dataset)


def test_a_refused_name_says_which_release_had_it():
    with pytest.raises(UnsupportedError, match=r"TF 1\.12 had it, and TF 1\.13 no more.*Mirrored"):
        tf.contrib.nccl.all_sum([1.0])


def test_one_copy_of_a_model_is_the_model():
    def model_fn(features):
        return features

    assert tf.contrib.estimator.replicate_model_fn(model_fn, devices=["/cpu:0"]) is model_fn
    with pytest.raises(ValueError, match="need to be reduced"):
        tf.contrib.estimator.replicate_model_fn(model_fn, tf.losses.Reduction.NONE)


@pytest.mark.parametrize("as_function", [False, True])
def test_a_tower_optimizer_is_the_optimizer_that_it_was_given(as_function):
    def adam():
        return tf.train.AdamOptimizer(0.1)

    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", [], initializer=tf.ones_initializer())
        optimizer = tf.contrib.estimator.TowerOptimizer(adam if as_function else adam())
        step = tf.train.get_or_create_global_step()
        train_op = optimizer.minimize(variable * 2.0, step)
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        assert session.run([variable, step]) == pytest.approx([0.9, 1])
        assert optimizer.get_slot_names() == ["m", "v"]
        assert optimizer.get_slot(variable, "m").name == "v/Adam:0"


def test_the_other_names_of_the_devices_in_a_machine():
    assert tf.contrib.distribute.get_tower_context is tensorflow.distribute.get_replica_context


@pytest.mark.parametrize(
    ("name", "rule", "told"),
    [
        ("tf.contrib.nccl.all_sum", "E2S101", "TF 1.12 had it, and TF 1.13 no more"),
        ("tf.contrib.data.TFRecordDataset", "E2S102", "TF 1.6 had it, and TF 1.8 no more"),
    ],
)
def test_check_says_since_when_a_name_is_gone(name, rule, told):
    report = check_text(f"import tensorflow as tf\n\nx = {name}('a')\n")
    (finding,) = [f for f in report.findings if f.rule == rule]
    assert told in finding.message
