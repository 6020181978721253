"""The pages about the rules are reached by links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from estimator2strategy.tools.check import check_command, settings
from estimator2strategy.tools.check.check_report import LevelReport
from estimator2strategy.tools.check.levels import process
from estimator2strategy.tools.check.rule import rules

FOLDER = Path(__file__).resolve().parents[3] / "migration_guide" / "rules"


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_links_lead_somewhere(rule):
    page, _, anchor = rule.page.partition("#")
    headings = (FOLDER.parents[1] / page).read_text().splitlines()
    assert anchor in [line.removeprefix("## ").lower().replace(" ", "-") for line in headings]
    assert not rule.guide or (FOLDER.parent / rule.guide).is_file()


def test_commands_of_the_page_about_ci_are_understood(tmp_path, monkeypatch):
    text = (FOLDER.parent / "ci.md").read_text()
    commands = re.findall(r"^\s*(?:- run: )?e2s check (.+?)(?:  +#.*)?$", text, re.MULTILINE)
    assert len(commands) == 4
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "model.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    # There is no such model; what is asked of it is understood all the same.
    monkeypatch.setattr(process, "run", lambda asked, level: LevelReport(level, asked.name))
    assert [check_command.main(line.split()) for line in commands] == [0] * len(commands)


def test_settings_of_the_page_about_ci_are_understood(tmp_path):
    text = (FOLDER.parent / "ci.md").read_text()
    (tmp_path / "pyproject.toml").write_text(re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1])
    assert settings.read(tmp_path).ignore == ("E2S405",)
