"""Whether what a program found is what its golden says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def assert_same(found: Any, expected: Any, where: str) -> None:
    """Equal, but for the last digits of floats."""
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected), where
        for key, value in expected.items():
            assert_same(found[key], value, f"{where}, {key}")
    elif isinstance(expected, list) and _numbers(expected):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=where)
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, where)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6), where
    else:
        assert found == expected, where


def _numbers(values: list) -> bool:
    return np.asarray(values, dtype=object).size > 0 and all(
        isinstance(value, (int, float)) for value in np.ravel(np.asarray(values, dtype=object))
    )
