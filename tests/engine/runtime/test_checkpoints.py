"""Checkpoints that do not fit, and what is said about them."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy.engine.runtime import checkpoints
from tests.engine.runtime.programs import falling, host_estimator, numbers

tf1 = tf.compat.v1


def with_extra(shape):
    def model_fn(features, labels, mode, params):
        tf1.get_variable("extra", shape, initializer=tf1.zeros_initializer())
        return falling(features, labels, mode, params)

    return model_fn


def test_other_shape_in_the_checkpoint_is_an_error_that_names_the_variable(model_dir):
    host_estimator(model_dir, with_extra([2, 3])).train(numbers(1))
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Restoring from checkpoint failed.*a mismatch between",
    ) as raised:
        host_estimator(model_dir, with_extra([3, 2])).train(numbers(1), steps=1)
    assert "differs: extra is float32 [2, 3] in the checkpoint, float32 [3, 2] in the model" in str(
        raised.value
    )


def test_variable_that_the_checkpoint_lacks_is_named(model_dir):
    host_estimator(model_dir).train(numbers(1))
    with pytest.raises(tf.errors.NotFoundError, match="missing in the checkpoint: extra float32"):
        host_estimator(model_dir, with_extra([3])).train(numbers(1), steps=1)


def test_slots_stand_in_the_line_of_their_variable(tmp_path):
    path = str(tmp_path / "ckpt")
    with tf.Graph().as_default(), tf1.Session() as session:
        for name in ("a", "a/Adam", "a/Adam_1", "beta1_power"):
            tf1.get_variable(name, [2], use_resource=True)
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver().save(session, path)
    expected = {name: (tf.TensorShape([3]), tf.float32) for name in ("a", "a/Adam", "a/Adam_1")}
    assert checkpoints.compare(expected, path).splitlines() == [
        "  differs: a is float32 [2] in the checkpoint, float32 [3] in the model "
        "(also its Adam, Adam_1)",
        "  only in the checkpoint: beta1_power [2]",
    ]


def test_the_checkpoint_of_another_model_is_called_so_without_the_stack_of_an_op(model_dir):
    host_estimator(model_dir).train(numbers(1))

    def other(features, labels, mode, params):
        with tf1.variable_scope("other"):
            return falling(features, labels, mode, params)

    with pytest.raises(tf.errors.NotFoundError) as raised:
        host_estimator(model_dir, other).train(numbers(1), steps=1)
    said = str(raised.value)
    assert said.startswith("Restoring from checkpoint failed")
    assert said.endswith("Is this the model_dir of another model?")
    assert "stack trace" not in said
    assert raised.value.__suppress_context__


def test_parts_of_a_partitioned_variable_are_compared_as_a_whole(tmp_path):
    path = str(tmp_path / "ckpt")
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        tf1.get_variable(
            "table",
            [4, 2],
            initializer=tf1.zeros_initializer(),
            partitioner=tf1.fixed_size_partitioner(2),
            use_resource=True,
        )
        saver = tf1.train.Saver()
        session.run(tf1.global_variables_initializer())
        saver.save(session, path)
        expected = checkpoints.expected_variables(saver, graph)
    assert expected == {"table": (tf.TensorShape([4, 2]), tf.float32)}
    assert checkpoints.compare(expected, path) == ""


def test_the_newest_checkpoints_are_kept_and_named_by_relative_paths(model_dir):
    model = host_estimator(model_dir, falling, save_checkpoints_steps=2, keep_checkpoint_max=2)
    model.train(numbers(6))
    kept = sorted(path.stem for path in Path(model_dir).glob("*.index"))
    assert kept == ["model.ckpt-4", "model.ckpt-6"]
    state = Path(model_dir, "checkpoint").read_text()
    assert 'model_checkpoint_path: "model.ckpt-6"' in state


def of_shape(shape):
    """A model with one variable, which a `Saver(reshape=True)` restores from a checkpoint."""

    def model_fn(features, labels, mode, params):
        tf1.get_variable("extra", shape, initializer=tf1.ones_initializer())
        spec = falling(features, labels, mode, params)
        return spec._replace(scaffold=tf1.train.Scaffold(saver=tf1.train.Saver(reshape=True)))

    return model_fn


def test_a_saver_that_reshapes_restores_variables_of_another_shape(model_dir):
    host_estimator(model_dir, of_shape([2, 3])).train(numbers(1))
    resumed = host_estimator(model_dir, of_shape([3, 2]))
    resumed.train(numbers(1), steps=1)
    assert resumed.get_variable_value("extra").tolist() == [[1.0, 1.0]] * 3


def test_a_saver_that_reshapes_refuses_variables_of_another_size(model_dir):
    host_estimator(model_dir, of_shape([2, 3])).train(numbers(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Restoring from checkpoint failed"):
        host_estimator(model_dir, of_shape([4])).train(numbers(1), steps=1)
