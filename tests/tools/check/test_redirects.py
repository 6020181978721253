"""The ids of rules that another tool has today go on to be understood."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from checked_programs import inside

from estimator2strategy.tools.check import check_command, explain
from estimator2strategy.tools.check.rule import redirects, rules

GUIDE = Path(__file__).resolve().parents[3] / "migration_guide"
MOVED = list(redirects().values())


@pytest.mark.parametrize("moved", MOVED, ids=lambda moved: moved.id)
def test_an_old_id_is_explained_by_its_companion(moved, capsys):
    assert explain.main([moved.id]) == explain.main([moved.name]) == 0
    said = capsys.readouterr().out
    assert said.count(moved.companion) == 2


@pytest.mark.parametrize("moved", MOVED, ids=lambda moved: moved.id)
def test_an_old_id_in_settings_comments_and_baselines_does_nothing(moved, tmp_path, capsys):
    (tmp_path / "program.py").write_text(f"x = 1  # e2s: ignore[{moved.id}] the end of a file\n")
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.estimator2strategy.check]\nignore = ["{moved.id}"]\n'
        f'severity = {{ {moved.id} = "info" }}\n'
    )
    entry = {"rule": moved.id, "path": "program.py", "symbol": "", "text": "x", "count": 1}
    baseline = tmp_path / "e2s-baseline.json"
    baseline.write_text(json.dumps({"version": 1, "findings": [entry]}))
    with inside(tmp_path):
        assert check_command.main(["program.py"]) == 0
        assert check_command.main(["program.py", "--select", f"{moved.name},E2S0"]) == 0
    assert capsys.readouterr().out.count("nothing found in 1 file") == 2


@pytest.mark.parametrize("moved", MOVED, ids=lambda moved: moved.id)
def test_the_page_about_ci_names_the_companion(moved):
    assert moved.id not in rules()
    text = (GUIDE / "ci.md").read_text(encoding="utf-8")
    assert re.search(rf"{moved.id}.*{moved.companion.rpartition(' ')[2]}", text)


def test_a_family_selects_its_rules(tmp_path, capsys):
    program = "import tensorflow as tf\n\nx = undefined\ny = tf.no_such_name\n"
    (tmp_path / "program.py").write_text(program)
    with inside(tmp_path):
        assert check_command.main(["program.py", "--select", "python"]) == 1
        of_python = capsys.readouterr().out
        assert check_command.main(["program.py", "--ignore", "python"]) == 1
        others = capsys.readouterr().out
    assert "E2S007" in of_python
    assert "E2S105" not in of_python
    assert "E2S007" not in others
    assert "E2S105" in others
