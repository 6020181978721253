"""Loss scaling of Keras as in TF 1.15, and what of it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.facade import namespace
from tests import legacy_programs
from tests.same import assert_same

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "loss_scale.json").read_text())


@pytest.fixture(scope="module")
def program():
    with legacy_programs.imported("loss_scale") as program:
        yield program


@pytest.fixture(scope="module")
def mixed_precision():
    return namespace.resolve("tf.keras.mixed_precision.experimental")


@pytest.mark.parametrize("case", GOLDEN)
def test_loss_scale_optimizer_trains_and_saves_what_it_did_in_tf_1_15(case, program):
    found, expected = program.run(case), dict(GOLDEN[case])
    # tf-keras counts the step whose gradients were infinite; see migration_guide/differences.md.
    expected["global_step"] += 1 if case.startswith("dynamic") else 0
    assert_same(found, expected, case)


def test_dynamic_loss_scale_object_is_refused_with_the_line(mixed_precision):
    with tf.Graph().as_default():
        scale = tf.compat.v1.train.experimental.DynamicLossScale(64.0, 5)
        sgd = namespace.resolve("tf.keras.optimizers.SGD")(0.1)
        with pytest.raises(UnsupportedError, match=r"(?s)test_loss_scaling.py:\d+.*initial_scale"):
            mixed_precision.LossScaleOptimizer(sgd, scale)


@pytest.mark.parametrize("scale", ["dynamics", None, [8]])
def test_value_that_is_no_loss_scale_is_refused(scale, mixed_precision):
    sgd = namespace.resolve("tf.keras.optimizers.SGD")(0.1)
    with pytest.raises(ValueError, match="loss_scale of LossScaleOptimizer must be a scale"):
        mixed_precision.LossScaleOptimizer(sgd, scale)


@pytest.mark.parametrize(
    ("name", "scale"), [("mixed_float16", "dynamic"), ("mixed_bfloat16", None), ("float32", None)]
)
def test_policy_takes_the_loss_scale_that_is_its_own(name, scale, mixed_precision):
    policy = mixed_precision.Policy(name, loss_scale=scale)
    assert policy.variable_dtype == "float32"
    assert policy.compute_dtype == mixed_precision.Policy(name).compute_dtype


@pytest.mark.parametrize(
    ("name", "scale"), [("mixed_float16", None), ("mixed_float16", 128), ("float16", 8.0)]
)
def test_policy_refuses_another_loss_scale_than_its_own(name, scale, mixed_precision):
    with pytest.raises(UnsupportedError, match=r"(?s)test_loss_scaling.py:\d+.*give compile"):
        mixed_precision.Policy(name, loss_scale=scale)
