"""Variables and numbers of `tf.contrib` are those that TF 1.15 made of the same cases."""

import numpy as np
import parity
import pytest
import tensorflow

import estimator2strategy.tf1 as tf
from estimator2strategy.engine import behavior
from estimator2strategy.engine.worlds import legacy_world

CASES = [(m, name) for m in parity.modules() for name in parity.cases(m)]
# What updates variables: it has kernels, or code, of its own for reference variables. The loss of
# `training.gradients` is read beside the update, before or after it, in TF 1.15 as well.
UPDATES = [case for case in CASES if case[0] in ("opt", "mixed_precision", "variables")]
# What builds loops.
LOOPS = [case for case in CASES if case[0] in ("keras", "rnn")]


@pytest.mark.parametrize(("module", "name"), CASES)
def test_is_what_tf_1_15_made(module, name):
    """With the variables and the control flow of a recording."""
    graph = tensorflow.Graph()
    behavior.mark(graph, behavior.Behavior(reference_variables=False, control_flow_v2=True))
    _check_case(module, name, graph)


@pytest.mark.parametrize(("module", "name"), UPDATES + LOOPS)
def test_is_the_same_with_the_reference_variables_and_loops_of_tf_1_15(module, name):
    _check_case(module, name)


def _check_case(module, name, graph=None):
    expected = parity.golden(module)[name]
    with legacy_world():
        actual = parity.run(tf, parity.cases(module)[name], graph)
    assert _described(actual, expected) == expected["variables"]
    assert len(actual["runs"]) == len(expected["runs"])
    for step, (ours, theirs) in enumerate(zip(actual["runs"], expected["runs"])):
        _check(ours, theirs, f"run {step}")


def _described(actual, expected):
    """The variables of `actual`, without a shape where TF 1.15 knew of none."""
    free = {name for name, shape, *_ in expected["variables"] if shape is None}
    return [[n, None if n in free else s, *rest] for n, s, *rest in actual["variables"]]


def _check(ours, theirs, where):
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:
            _check(ours[key], theirs[key], f"{where}, {key}")
    elif isinstance(theirs, list) and any(isinstance(v, (list, str)) for v in theirs):
        assert len(ours) == len(theirs), where
        for index, value in enumerate(theirs):
            _check(ours[index], value, f"{where}[{index}]")
    elif theirs is None or isinstance(theirs, str):
        assert ours == theirs, where
    else:
        # Kernels of 2019 and of today add in another order.
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6, err_msg=where)
