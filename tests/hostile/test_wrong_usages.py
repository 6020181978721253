"""Each wrong usage of the table ends as the table says; `python -m tests.hostile` counts them."""

from __future__ import annotations

import pytest

from tests.hostile.__main__ import PAGE
from tests.hostile.wrong_usages import AREAS, result_of

CASES = [
    pytest.param(row, id=f"{area}: {row.name}") for area, rows in AREAS.items() for row in rows
]


@pytest.mark.parametrize("usage", CASES)
def test_a_wrong_usage_ends_in_a_sentence(usage, model_dir):
    result = result_of(usage, model_dir)
    assert result.is_right, f"{result.outcome.value}: {result.said}"


def test_names_of_rows_tell_them_apart():
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)


def test_the_page_counts_the_rows_of_the_table():
    assert f"| **all** | {len(CASES)} |" in PAGE.read_text()
