"""Canned Estimators on two replicas learn what one device learns of both batches together."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from tests.programs.canned import BINARY, FEATURES, columns
from tests.strategies import mirrored

tf1 = tf.compat.v1
BATCH, STEPS = 8, 6
SLOT = re.compile(r"/(Adagrad|Ftrl|accumulator|linear)(_\d)?$")
COLUMNS = columns()
# The loss of TF 1 is the sum over a batch, and a replica's batch is half as large.
SHARE = {"": 0.5, "V2": 1.0}
# The default optimizers: Adagrad and Ftrl, whose updates are not linear in the gradients.
KINDS = {
    "Baseline": {},
    "Linear": {"feature_columns": COLUMNS["wide"]},
    "DNN": {"feature_columns": COLUMNS["embedded"], "hidden_units": [4, 3]},
    "DNNLinearCombined": {
        "linear_feature_columns": COLUMNS["wide"],
        "dnn_feature_columns": COLUMNS["embedded"],
        "dnn_hidden_units": [4],
    },
}


def result(kind, version, folder, replicas):
    """Variables and metrics of a classifier after a few steps."""
    strategy = mirrored(replicas) if replicas > 1 else None
    config = estimator.RunConfig(
        str(folder / str(replicas)),
        tf_random_seed=3,
        train_distribute=strategy,
        eval_distribute=strategy,
    )

    def batches(size):
        return tf.data.Dataset.from_tensor_slices((FEATURES, BINARY)).batch(size)

    model = getattr(estimator, f"{kind}Classifier{version}")(config=config, **KINDS[kind])
    model.train(lambda: batches(BATCH // replicas).repeat(), steps=STEPS)
    # What optimizers keep for parts of a variable has other names: strategies cut none up.
    weights = [name for name in model.get_variable_names() if not SLOT.search(name)]
    found = {name: model.get_variable_value(name) for name in weights}
    found.update(model.evaluate(lambda: batches(BATCH // replicas)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version"),
    [("Baseline", "V2"), ("Linear", ""), ("DNN", ""), ("DNNLinearCombined", "V2")],
)
def test_two_replicas_learn_what_one_device_learns(kind, version, tmp_path):
    expected = result(kind, version, tmp_path, 1)
    found = result(kind, version, tmp_path, 2)
    assert sorted(found) == sorted(expected)
    assert found.pop("loss") == pytest.approx(expected.pop("loss") * SHARE[version], rel=1e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, 2e-5, 2e-6, err_msg=name)
