"""The table of evidence says what the tests show."""

from __future__ import annotations

import ast
import json

import pytest

from tests import evidence


def test_the_table_in_the_page_is_that_of_the_marks():
    text = evidence.PAGE.read_text()
    assert text == evidence.page(text, evidence.marks()), "python -m tests.evidence"


def test_marks_name_what_the_table_has():
    marks = evidence.marks()
    assert {mark.feature for mark in marks} <= set(evidence.FEATURES)
    assert {mark.kind for mark in marks} == set(evidence.KINDS)
    for mark in marks:
        assert bool(mark.generations) == (mark.kind == "compiled"), mark
        assert set(mark.generations) <= set(evidence.GENERATIONS), mark


def test_a_test_uses_what_its_kind_stands_for():
    assert [mark for mark in evidence.marks() if not evidence.uses_its_kind(mark)] == []


def test_a_test_that_may_fail_is_no_evidence():
    for mark in evidence.marks():
        file, *_, name = mark.test.split("::")
        for node in ast.walk(ast.parse((evidence.TESTS / file).read_text())):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                assert "xfail" not in decorators
                assert "mark.skip(" not in decorators


def test_tests_are_counted_once_and_tpus_named(tmp_path):
    (tmp_path / "test_a.py").write_text(
        "import pytest\n"
        "@pytest.mark.evidence('training', 'rehearsed')\n"
        "def test_one(): pass\n"
        "class TestMore:\n"
        "    @pytest.mark.evidence('training', 'rehearsed')\n"
        "    @pytest.mark.evidence('training', 'compiled', 'v3 v2')\n"
        "    def test_two(self): pass\n"
        "def test_three(): pass\n"
    )
    marks = evidence.marks(tmp_path)
    assert [mark.test for mark in marks] == [
        "test_a.py::test_one",
        *["test_a.py::TestMore::test_two"] * 2,
    ]
    (row,) = (line for line in evidence.table(marks).splitlines() if "`train`" in line)
    assert [cell.strip() for cell in row.split("|")[2:-1]] == [
        *("", "v2, v3", "", "2", "", ""),
        *(evidence.ON_AN_H200["training"], "never"),
    ]


def test_what_ran_on_a_card_stands_in_the_results():
    """Of the figures that `benchmarks/device/measure.py` wrote on it."""
    results = json.loads((evidence.TESTS.parent / "benchmarks/device/results.json").read_text())
    assert "H200" in str(results)
    for program in evidence.ON_AN_H200.keys() & {"mnist", "bert", "resnet"}:
        assert program in str(results), program
    assert set(evidence.ON_AN_H200) <= set(evidence.FEATURES)


def test_a_mark_that_is_not_on_a_test_is_an_error(tmp_path):
    path = tmp_path / "test_a.py"
    path.write_text("import pytest\npytestmark = pytest.mark.evidence('training', 'traced')\n")
    with pytest.raises(ValueError, match=r"test_a\.py: a mark"):
        evidence.marks_in(path, tmp_path)
