"""Each rule finds in its failing sample what its page says, and nothing in its passing one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimator2strategy.tools import check
from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.rule import rules
from estimator2strategy.tools.check.settings import Settings, Target

CHECK = Path(check.__file__).parent
RULES = list(rules().values())
SAMPLED = [rule for rule in RULES if rule.text.flagged and rule.level == Evidence.STATIC]
FAMILIES = {"check", "estimator", "tpu", "tensorflow", "keras", "python", "libraries"}


def found(rule, text):
    return check_text(text, Settings(target=Target(rule.target))).findings


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_failing_sample_is_found(rule):
    findings = found(rule, rule.text.flagged)
    lines = [f"{f.line}:{f.column} {f.rule} {f.severity}: {f.message}" for f in findings]
    assert tuple(lines) == rule.text.findings
    assert max(f.severity for f in findings if f.rule == rule.id) == rule.severity
    assert all(f.fix for f in findings)


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_passing_sample_is_a_good_example_altogether(rule):
    findings = found(rule, rule.text.clean)
    assert [f for f in findings if f.rule == rule.id] == []
    allowed = () if rule.target == "facade" else ("E2S102",)
    assert [f for f in findings if f.severity > Severity.INFO and f.rule not in allowed] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_says_what_why_and_what_to_do(rule):
    assert re.fullmatch(r"E2S\d{3}", rule.id)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+|unparsable", rule.name)
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.text.why.endswith((".", ")", "'"))
    assert rule.text.fix


def test_each_row_has_a_page_and_ids_and_names_are_unique():
    rows = (CHECK / "rules" / "index.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(RULES) == len(rows) == len({rule.name for rule in RULES})
    assert {path.stem for path in (CHECK / "rules" / "texts").iterdir()} == set(rules())


def test_each_module_of_a_family_is_a_rule_of_it():
    files = {path.relative_to(CHECK) for path in CHECK.glob("rules/*/[a-z]*.py")}
    modules = {rule.found_by.partition(":")[0] for rule in RULES if rule.finds}
    named = {Path(*module.split(".")).with_suffix(".py") for module in modules}
    assert named == files
    assert {rule.family for rule in RULES} == FAMILIES
    assert all(rule.found_by.split(".")[1] == rule.family for rule in RULES if rule.finds)


def test_a_rule_without_a_function_is_found_by_the_module_that_its_row_names():
    for rule in RULES:
        if not rule.finds:
            path = CHECK / Path(*rule.found_by.split(".")).with_suffix(".py")
            assert rule.id in path.read_text(encoding="utf-8"), rule.id
