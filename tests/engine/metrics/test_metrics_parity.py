"""Converted metrics give the numbers that the legacy functions give in a v1 Session."""

from __future__ import annotations

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics_cases import CASES
from metrics_parity import Case, assert_same, batches_of, recorded_case

from estimator2strategy.engine.metrics import rows

CALLS = [pytest.param(case, kind, id=f"{case}-{kind}") for case in CASES for kind in case.weights]
ONE_CASE_PER_FUNCTION = list({case.function: case for case in CASES}.values())
# Sizes of batches: an uneven last one, batches of one example, no batch at all.
SIZES = st.sampled_from([[4, 4, 3], [7], [1, 5], [2, 2, 1], []])


def test_every_row_has_a_case() -> None:
    assert {row.function for row in rows()} == {case.function for case in CASES}


@pytest.mark.parametrize(("case", "kind"), CALLS)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), sizes=SIZES)
def test_equals_the_legacy_metric(case: Case, kind: str, seed: int, sizes: list[int]) -> None:
    recorded = recorded_case(case, kind)
    batches = batches_of(case, kind, seed, sizes)

    assert_same(recorded.new(batches), recorded.legacy(batches), case.exact and kind == "none")


@pytest.mark.parametrize("case", ONE_CASE_PER_FUNCTION, ids=str)
def test_updates_inside_a_loop_of_a_function_without_retracing(case: Case) -> None:
    kind = case.weights[-1]
    recorded = recorded_case(case, kind)
    converted = recorded.converted
    assert converted is not None
    metric = converted.build()
    batches = batches_of(case, kind, 5, [3, 3, 2])
    values = [recorded.inputs(batch) for batch in batches]

    @tf.function(
        input_signature=[tf.TensorSpec(t.shape, t.dtype) for t in converted.inputs]
        + [tf.TensorSpec([], tf.int32)]
    )
    def step(*values_and_times):
        *tensors, times = values_and_times
        for _ in tf.range(times):
            converted.update(metric, tensors)

    for tensors in values:
        step(*map(tf.constant, tensors), tf.constant(2))

    assert step.experimental_get_tracing_count() == 1
    twice = [batch for batch in batches for _ in range(2)]
    assert_same(metric.result().numpy(), recorded.legacy(twice))
