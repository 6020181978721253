"""Which ops change something, and which may be waited for although they do not."""

import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.effects import (
    calls_python,
    changes_something,
    may_be_waited_for,
)


@pytest.mark.parametrize(
    ("op", "inputs", "changes", "waited_for"),
    [
        ("MatMul", ["a", "b"], False, False),
        ("ReadVariableOp", ["v"], False, False),
        ("ReadVariableOp", ["v", "^write"], False, True),
        ("LookupTableFindV2", ["t", "key", "default"], False, True),
        ("Assert", ["a", "b"], False, True),
        ("RandomUniform", ["shape"], True, True),
        ("AssignAddVariableOp", ["v", "a"], True, True),
    ],
)
def test_what_may_be_waited_for_is_more_than_what_changes_something(
    op, inputs, changes, waited_for
):
    node = tf.compat.v1.NodeDef(op=op, input=inputs)
    assert changes_something(node) is changes
    assert may_be_waited_for(node) is waited_for


def test_a_call_has_the_effects_of_its_function_and_none_of_its_own():
    node = tf.compat.v1.NodeDef(op="StatefulPartitionedCall")
    node.attr["f"].func.name = "increment"
    assert not changes_something(node)
    assert may_be_waited_for(node)


def test_python_is_called_whether_or_not_the_op_is_stateful():
    ops = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
    assert all(calls_python(tf.compat.v1.NodeDef(op=op)) for op in ops)
