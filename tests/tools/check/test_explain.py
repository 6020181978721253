"""`e2s explain`."""

from __future__ import annotations

from estimator2strategy.tools.check import explain
from estimator2strategy.tools.check.all_rules import rules


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


def test_unknown_rule_is_an_error(capsys):
    assert explain.main(["E2S999"]) == 2
    assert "E2S999" in capsys.readouterr().err
