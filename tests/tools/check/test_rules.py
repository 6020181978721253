"""Each rule finds its failing sample, and says nothing of its passing one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimator2strategy.tools import check
from estimator2strategy.tools.check.all_rules import rules
from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.described_rules import DESCRIBED
from estimator2strategy.tools.check.settings import Settings, Target

CHECK = Path(check.__file__).parent
RULES = list(rules().values())
SAMPLED = [rule for rule in RULES if rule.bad and rule.level == Evidence.STATIC]


def found(rule, text):
    settings = Settings(target=Target(rule.target))
    return [f for f in check_text(text, settings).findings if f.rule == rule.id]


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_failing_sample_is_found(rule):
    findings = found(rule, rule.bad)
    assert findings
    assert max(f.severity for f in findings) == rule.severity
    assert all(f.fix for f in findings)


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_passing_sample_is_not(rule):
    assert found(rule, rule.good) == []


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_passing_sample_is_a_good_example_altogether(rule):
    report = check_text(rule.good, Settings(target=Target(rule.target)))
    allowed = () if rule.target == "facade" else ("E2S102",)
    assert [
        f for f in report.findings if f.severity > Severity.INFO and f.rule not in allowed
    ] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_says_what_why_and_what_to_do(rule):
    assert re.fullmatch(r"E2S\d{3}", rule.id)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+|unparsable", rule.name)
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.why.endswith((".", ")", "'"))
    assert rule.fix


def test_each_file_and_each_row_is_one_rule_and_names_are_unique():
    files = [*CHECK.glob("rules/[a-z]*.py"), *CHECK.glob("graph_rules/[a-z]*.py")]
    assert len(RULES) == len(files) + len(DESCRIBED)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_a_rule_is_found_by_its_function_or_by_the_module_that_its_row_names():
    described = {rule.id for rule in RULES if rule.found_by}
    assert described == {rule.id for rule in DESCRIBED}
    for rule in DESCRIBED:
        assert rule.id in (CHECK / rule.found_by).read_text(encoding="utf-8"), rule.id
