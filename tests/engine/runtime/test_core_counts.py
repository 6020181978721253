"""The cores to emulate, as a user writes them."""

from __future__ import annotations

import pytest

from estimator2strategy.engine.runtime.requested_job import hosts_and_cores


@pytest.mark.parametrize(
    ("text", "counts"),
    [("8", (1, 8)), ("2x4", (2, 4)), ("0", (1, 0)), ("2x", None), ("x4", None), ("-1", None)],
)
def test_hosts_and_cores_are_read_or_refused(text, counts):
    assert hosts_and_cores(text) == counts
