"""Reference variables of TF 1.15 become those that TensorFlow 2 loads, trains and saves."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.saved_models import model_files, resource_variables
from estimator2strategy.errors import SavedModelError
from tests.engine.saved_models.small_exports import answers, exported

tf1 = tf.compat.v1


def linear():
    """A graph as TF 1.15 builds it: y = 2 x + 1."""
    x = tf1.placeholder(tf.float32, [None, 1], "x")
    with tf1.variable_scope("", use_resource=False):
        slope = tf1.get_variable("slope", initializer=[[2.0]])
        offset = tf1.get_variable("offset", initializer=[1.0])
    assert slope.op.type == offset.op.type == "VariableV2"
    return {"x": x}, {"y": tf.matmul(x, slope) + offset}


def returned():
    x = tf1.placeholder(tf.float32, [None, 1], "x")
    offset = tf1.get_variable("offset", initializer=[1.0], use_resource=False)
    return {"x": x}, {"offset": offset._ref()}


def test_a_variable_that_a_signature_returns(tmp_path):
    target, _, _ = rewritten(tmp_path, returned)
    call = tf.saved_model.load(target).signatures["serving_default"]
    assert call(x=tf.constant([[3.0]]))["offset"].numpy().tolist() == [1.0]


def rewritten(tmp_path, build):
    source = exported(tmp_path / "source", build)
    model = model_files.read(source)
    count = resource_variables.with_resource_variables(model)
    model_files.write(model, source, str(tmp_path / "target"))
    return str(tmp_path / "target"), source, count


def test_tf2_trains_and_saves_them_again(tmp_path):
    target, source, count = rewritten(tmp_path, linear)
    assert count == 2
    assert not tf.saved_model.load(source).variables  # so it is without the rewrite
    loaded = tf.saved_model.load(target)
    assert sorted(variable.name for variable in loaded.variables) == ["offset:0", "slope:0"]
    call = loaded.signatures["serving_default"]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(call(x=tf.constant([[3.0]]))["y"])
    assert float(loss) == 7.0
    for variable, gradient in zip(
        loaded.variables, tape.gradient(loss, loaded.variables), strict=True
    ):
        variable.assign_sub(0.1 * gradient)
    assert float(call(x=tf.constant([[3.0]]))["y"][0, 0]) == pytest.approx(1.7 * 3 + 0.9)
    tf.saved_model.save(loaded, str(tmp_path / "again"), signatures=dict(loaded.signatures))
    again = tf.saved_model.load(str(tmp_path / "again")).signatures["serving_default"]
    assert float(again(x=tf.constant([[3.0]]))["y"][0, 0]) == pytest.approx(6.0)


def updates():
    """Each kind of op on references, in an order that control inputs fix."""
    x = tf1.placeholder(tf.float32, [], "x")
    with tf1.variable_scope("", use_resource=False):
        table = tf1.get_variable("table", initializer=[1.0, 2.0, 3.0])
        steps = tf1.get_variable("steps", initializer=0, dtype=tf.int32)
        weight = tf1.get_variable("weight", initializer=5.0)
    added = tf1.assign_add(table, [x, x, x])
    with tf.control_dependencies([added]):
        scattered = tf1.scatter_update(table, [1], [10.0])
    with tf.control_dependencies([scattered]):
        read = tf.identity(table._ref())
    trained = tf1.train.AdamOptimizer(0.5).minimize(weight * x, steps, [weight])
    with tf.control_dependencies([trained]):
        after = tf.raw_ops.IdentityN(input=[weight._ref(), steps._ref()])
    known = tf1.is_variable_initialized(table)
    return {"x": x}, {"read": read, "weight": after[0], "steps": after[1], "known": known}


def test_updates_do_what_they_did(tmp_path):
    target, source, count = rewritten(tmp_path, updates)
    assert count == 7  # with those of Adam
    expected, found = (answers(folder, x=1.0) for folder in (source, target))
    assert found["read"].tolist() == [2.0, 10.0, 4.0]
    assert found["steps"] == 1
    assert found["weight"] == pytest.approx(4.5)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


def branch():
    x = tf1.placeholder(tf.float32, [], "x")
    reference = tf1.get_variable("v", initializer=1.0, use_resource=False)
    switched = tf.raw_ops.RefSwitch(data=reference._ref(), pred=x > 0)
    return {"x": x}, {"y": tf.identity(switched[1])}


def test_a_reference_that_is_passed_on_is_refused(tmp_path):
    model = model_files.read(exported(tmp_path / "source", branch))
    with pytest.raises(SavedModelError, match=r"'RefSwitch' \(RefSwitch\) passes on a reference"):
        resource_variables.with_resource_variables(model)
