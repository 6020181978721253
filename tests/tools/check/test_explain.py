"""`e2s explain`."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check import explain
from estimator2strategy.tools.check.rule import rules


def test_rule_is_explained_with_its_samples(capsys):
    assert explain.main(["E2S203"]) == 0
    said = capsys.readouterr().out
    assert "CrossShardOptimizer" in said
    assert "found in:" in said


def test_name_will_do(capsys):
    assert explain.main(["fixed-batch-size"]) == 0
    assert capsys.readouterr().out.startswith("E2S201")


def test_without_a_rule_all_are_listed(capsys):
    assert explain.main([]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rules())


@pytest.mark.parametrize("given", ["e2s203", "203"])
def test_an_id_may_be_spelled_in_small_letters_or_be_a_number(given, capsys):
    assert explain.main([given]) == 0
    assert capsys.readouterr().out.startswith("E2S203")


@pytest.mark.parametrize(
    ("given", "hint"),
    [("E2S999", "`e2s explain` lists all."), ("fixed-batch", "Did you mean fixed-batch-size?")],
)
def test_unknown_rule_is_an_error_that_names_the_nearest(given, hint, capsys):
    assert explain.main(["E2S203", given]) == 2
    said = capsys.readouterr().err
    assert f"there is no rule {given!r}. {hint}" in said
