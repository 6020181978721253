"""Bad input gives what the real Estimator gave: the same number, or the same error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from metrics_cases import CASES
from metrics_parity import assert_same, batches_of, recorded_case

from estimator2strategy import estimator
from estimator2strategy.errors import RecordingError
from tests.programs import bad_metrics

tf1 = tf.compat.v1
tpu = estimator.tpu
# Made by TensorFlow 2.15: see bad_metrics.py.
GOLDEN = json.loads((Path(__file__).parents[2] / "goldens" / "bad_metrics.json").read_text())
# The first, whose labels are dense, of each function.
ONE_CASE_PER_FUNCTION = list({case.function: case for case in reversed(CASES)}.values())


# --- Whole evaluations.


@pytest.mark.parametrize("kind", bad_metrics.KINDS)
def test_evaluation_gives_what_the_real_estimator_gave(kind):
    actual, expected = bad_metrics.outcomes(kind), GOLDEN[kind]
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if value.endswith("Error"):
            assert actual[name] == value, name
        else:
            assert float(actual[name]) == pytest.approx(float(value), rel=1e-6, nan_ok=True), name


def test_error_of_a_batch_names_the_metric(tmp_path):
    input_fn, _ = bad_metrics.KINDS["fewer labels"]
    of_user = r"'squared_error/SquaredDifference', made at .*bad_metrics\.py:\d+: \"squared_error\""
    with pytest.raises(tf.errors.InvalidArgumentError, match=of_user) as error:
        bad_metrics.evaluate(["squared_error"], input_fn)
    assert "[2] vs. [3]" in str(error.value) or "[3] vs. [2]" in str(error.value)


# --- Each function.


def one_more_prediction(batch, rng):
    """The last one twice; without predictions, one more of whatever there is beside values."""
    name = next(name for name in batch if name.startswith(("predictions", "values")))
    return {**batch, name: np.concatenate([batch[name], batch[name][-1:]])}


def nan_prediction(batch, rng):
    return {
        name: np.where(rng.rand(*array.shape) < 0.3, np.float32("nan"), array).astype(array.dtype)
        if isinstance(array, np.ndarray) and array.dtype.kind == "f"
        else array
        for name, array in batch.items()
    }


def label_of_no_class(batch, rng):
    if "labels" not in batch or batch["labels"].dtype.kind != "i":
        return batch
    return {**batch, "labels": batch["labels"] + 100 * (rng.rand(*batch["labels"].shape) < 0.3)}


def negative_label(batch, rng):
    if "labels" not in batch or batch["labels"].dtype.kind != "i":
        return batch
    return {**batch, "labels": batch["labels"] - 100 * (rng.rand(*batch["labels"].shape) < 0.3)}


def outcome(run, batches):
    try:
        return run(batches)
    except (tf.errors.InvalidArgumentError, ValueError):  # ValueError: of an eager tensor's shape
        return "error"


@pytest.mark.parametrize(
    "spoil", [one_more_prediction, nan_prediction, label_of_no_class, negative_label]
)
@pytest.mark.parametrize("kind", ["none", "last"])
@pytest.mark.parametrize("case", ONE_CASE_PER_FUNCTION, ids=str)
def test_function_gives_what_it_gave(case, kind, spoil):
    kind = case.weights[-1] if kind == "last" else kind
    recorded = recorded_case(case, kind)
    good, bad = batches_of(case, kind, 3, [4, 4])
    batches = [good, spoil(bad, np.random.RandomState(0))]
    expected, actual = outcome(recorded.legacy, batches), outcome(recorded.new, batches)
    if isinstance(expected, str):
        assert actual == expected
    else:
        assert not isinstance(actual, str)
        assert_same(actual, expected)


# --- What metric_fn may use on cores.


def evaluated(model_dir, eval_metrics_of, **kwargs):
    """Evaluates a model of one tensor on cores; `eval_metrics_of(features, doubled)`."""

    def model_fn(features, labels, mode, params):
        del labels, params
        doubled = features * 2.0
        return tpu.TPUEstimatorSpec(
            mode, loss=tf.reduce_mean(doubled), eval_metrics=eval_metrics_of(features, doubled)
        )

    def input_fn(params):
        values = np.arange(8, dtype=np.float32)
        return tf.data.Dataset.from_tensor_slices(values).batch(
            params["batch_size"], drop_remainder=True
        )

    config = tpu.RunConfig(model_dir=model_dir)
    model = tpu.TPUEstimator(
        model_fn, config=config, train_batch_size=4, eval_batch_size=4, **kwargs
    )
    return model.evaluate(input_fn, steps=2)


def in_an_op(features, doubled):
    del features
    return lambda: {"m": tf1.metrics.mean(doubled + 1.0)}, []


def beside_an_argument(features, doubled):
    return lambda x: {"m": tf1.metrics.mean(x[:2] * doubled)}, [features]


def of_another_shape(features, doubled):
    return lambda x: {"m": tf1.metrics.mean(x, weights=doubled)}, [features]


def in_a_branch(features, doubled):
    def metric_fn(x):
        return {"m": tf1.metrics.mean(tf.cond(x[0] > 0, lambda: doubled, lambda: x[:2]))}

    return metric_fn, [features]


def by_waiting(features, doubled):
    def metric_fn(x):
        with tf.control_dependencies([doubled]):
            return {"m": tf1.metrics.mean(x + 1.0)}

    return metric_fn, [features]


@pytest.mark.parametrize(
    ("eval_metrics_of", "used"),
    [
        (in_an_op, "mean(doubled + 1.0)"),
        (beside_an_argument, "mean(x[:2] * doubled)"),
        (of_another_shape, "weights=doubled"),
        (in_a_branch, "tf.cond(x[0] > 0, lambda: doubled"),
        (by_waiting, "mean(x + 1.0)"),
    ],
)
def test_metric_fn_that_captures_a_tensor_names_it_and_the_lines(
    model_dir, emulated_cores, eval_metrics_of, used
):
    emulated_cores(2)
    with pytest.raises(RecordingError, match=f"metric_fn .*{__file__}:") as error:
        evaluated(model_dir, eval_metrics_of)
    first, second, *_, advice = str(error.value).splitlines()
    assert '"mul' in first
    assert first.endswith("doubled = features * 2.0")
    assert f"used at {__file__}:" in second
    assert used in second
    assert "an argument to metric_fn" in advice


def test_metric_fn_that_returns_a_captured_tensor_names_it(model_dir, emulated_cores):
    emulated_cores(2)

    def returned(features, doubled):
        return lambda x: {"m": (doubled, tf1.metrics.mean(x)[1])}, [features]

    with pytest.raises(RecordingError, match=r"made at .*doubled = features \* 2.0"):
        evaluated(model_dir, returned)


def test_metric_fn_that_an_error_ends_before_an_op_is_made_names_it_too(model_dir, emulated_cores):
    emulated_cores(2)

    def product(features, doubled):
        return lambda x: {"m": tf1.metrics.mean(x * doubled)}, [features]

    with pytest.raises(RecordingError, match=r"made at .*doubled = features \* 2.0") as error:
        evaluated(model_dir, product)
    assert "Dimensions must be equal" in str(error.value.__cause__)


def test_an_error_of_metric_fn_that_captures_nothing_is_the_users_own(model_dir, emulated_cores):
    emulated_cores(2)

    def broken(features, doubled):
        return lambda x: {"m": tf1.metrics.mean(x, weights=tf.ones([3]))}, [features]

    with pytest.raises(ValueError, match="weights can not be broadcast") as error:
        evaluated(model_dir, broken)
    assert not isinstance(error.value, RecordingError)


def test_metric_fn_that_captures_a_part_of_the_batch_is_told_so(model_dir, emulated_cores):
    emulated_cores(2)

    def batch(features, doubled):
        return lambda x: {"m": tf1.metrics.mean(x, weights=features)}, [doubled]

    with pytest.raises(RecordingError, match="a part of the features and labels") as error:
        evaluated(model_dir, batch)
    assert "weights=features" in str(error.value)


def test_what_metric_fn_does_not_return_may_be_of_a_core(model_dir, emulated_cores):
    emulated_cores(2)

    def unused(features, doubled):
        def metric_fn(x):
            tf.reduce_sum(doubled)
            return {"m": tf1.metrics.mean(x)}

        return metric_fn, [doubled]

    assert evaluated(model_dir, unused)["m"] == 7.0


def test_metric_fn_may_capture_a_variable(model_dir, emulated_cores):
    emulated_cores(2)

    def variable(features, doubled):
        two = tf1.get_variable("two", [], initializer=tf1.constant_initializer(2.0))
        return lambda x: {"m": tf1.metrics.mean(x * two)}, [doubled]

    assert evaluated(model_dir, variable)["m"] == 14.0


def test_metric_fn_may_capture_anything_on_the_host(model_dir):
    assert evaluated(model_dir, in_an_op, use_tpu=False)["m"] == 8.0
