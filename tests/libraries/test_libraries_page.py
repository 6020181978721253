"""The guide has the tables of the libraries' programs as they were measured."""

from __future__ import annotations

from tests.libraries import __main__ as programs
from tests.libraries import page, table


def test_the_tables_are_those_of_the_results():
    text = page.PAGE.read_text(encoding="utf-8")
    assert "".join(page.tables()) in text
    assert "".join(page.suite_table()) in text


def test_of_the_tests_that_libraries_ship_nearly_all_pass_here():
    for name, counts in page.read("suites").items():
        assert counts["pass here"] >= 0.95 * counts["pass there"], name
        assert counts["pass there"] - counts["pass here"] == len(counts["not here"])


def test_every_program_was_measured_in_each_of_its_ways():
    measured = page.read("measured")
    for name in set(table.rows()):
        assert set(measured[name]) == set(programs.ways_of(name)), name
        assert max(measured[name].values()) <= programs.TOLERANCE
