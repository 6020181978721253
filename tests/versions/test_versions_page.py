"""`python -m tests.versions` reads its arguments, and the page is that of the results it kept."""

from __future__ import annotations

import json
from pathlib import Path

from tests.versions import __main__ as versions
from tests.versions import last_bits, versions_page

RESULTS = json.loads((Path(__file__).parent / "results.json").read_text())


def test_arguments_of_pytest_may_begin_with_a_dash():
    parsed = versions._parser().parse_args(["2.21:3.12", "--tests", "-m", "quick", "tests/x.py"])
    assert parsed.versions == ["2.21:3.12"]
    assert parsed.tests == ["-m", "quick", "tests/x.py"]
    assert versions._parser().parse_args([]).tests == ["-m", "quick"]


def test_the_page_has_the_results():
    assert versions_page.PAGE.read_text() == versions_page.page(RESULTS)


def test_ops_are_those_that_the_results_have():
    """A new op needs new results of all releases."""
    names = set(last_bits.digests())
    for found in RESULTS.values():
        assert set(found["bits"]) == names
