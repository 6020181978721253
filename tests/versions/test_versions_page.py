"""The page of TensorFlow's releases is that of the results kept by `python -m tests.versions`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.versions import last_bits, versions_page

RESULTS = json.loads((Path(__file__).parent / "results.json").read_text())


def test_the_page_has_the_results():
    assert versions_page.PAGE.read_text() == versions_page.page(RESULTS)


def test_ops_are_those_that_the_results_have():
    """A new op needs new results of all releases."""
    names = set(last_bits.digests())
    for found in RESULTS.values():
        assert set(found["bits"]) == names
