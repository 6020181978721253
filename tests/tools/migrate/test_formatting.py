"""Code of stage 8 has the shape of its project: formatted, imports sorted, within its limit."""

from __future__ import annotations

import shutil

import pytest

from estimator2strategy.tools.migrate import formatting
from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.preview import make_plan
from tests.tools.migrate.ladder_runs import ROOT

needs_ruff = pytest.mark.skipif(shutil.which("ruff") is None, reason="ruff is not installed")
BEFORE = "import os\n\nx = {  'a':1 }\n"
AFTER = BEFORE + "def f(one,\n      two): return g(one, 'a rather long string', two, one)\n"


def test_imports_stand_in_sections_with_their_modules_in_order():
    text = (
        '"""About."""\nimport keras\nfrom absl import flags\nfrom absl import app\nimport os\n'
        "from __future__ import division\nfrom . import data\n"
        "import numpy as np  # arrays\n\nx = 1\n"
    )
    assert formatting.with_sorted_imports(text, "program.py") == (
        '"""About."""\n\nfrom __future__ import division\n\nimport os\n\n'
        "import keras\nimport numpy as np  # arrays\nfrom absl import app, flags\n\n"
        "from . import data\n\nx = 1\n"
    )


def test_imports_of_the_programs_own_files_stand_behind_those_of_libraries(tmp_path):
    (tmp_path / "inputs.py").touch()
    text = "import inputs\nimport keras\n"
    sorted_text = formatting.with_sorted_imports(text, str(tmp_path / "main.py"))
    assert sorted_text == "import keras\n\nimport inputs\n"


@pytest.mark.parametrize(
    "text", ["import b\n# Not before b.\nimport a\n", "import b\nimport a; a.use(b)\n"]
)
def test_imports_with_something_between_them_stay(text):
    assert formatting.with_sorted_imports(text, "program.py") == text


@needs_ruff
def test_without_settings_only_what_has_changed_is_formatted(tmp_path):
    (tmp_path / ".git").mkdir()
    text = formatting.tidied(AFTER, BEFORE, str(tmp_path / "a.py"))
    assert text.startswith(BEFORE)
    assert 'def f(one, two):\n    return g(one, "a rather long string", two, one)\n' in text


@needs_ruff
def test_the_settings_of_the_project_hold_for_all_of_the_file(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.ruff]\nline-length = 40\nformat.quote-style = 'single'\n"
    )
    text = formatting.tidied(AFTER, BEFORE, str(tmp_path / "trainer" / "a.py"))
    assert "x = {'a': 1}\n" in text
    assert max(map(len, text.splitlines())) <= 40
    assert not (tmp_path / ".ruff_cache").exists()


@needs_ruff
def test_a_file_that_the_project_excludes_stays_as_it_is_written(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nextend-exclude = ['a.py']\n")
    assert formatting.tidied(AFTER, BEFORE, str(tmp_path / "a.py")) == AFTER


def test_a_formatter_that_fails_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[tool.black]\n")
    monkeypatch.setattr(formatting, "_installed", lambda name: shutil.which("false"))
    assert formatting.tidied(AFTER, BEFORE, str(tmp_path / "a.py")) == AFTER


def test_black_is_asked_where_the_project_has_settings_for_it(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 50\n")
    asked = []
    monkeypatch.setattr(formatting, "_installed", lambda name: f"/bin/{name}")
    monkeypatch.setattr(formatting, "_output", lambda command, text: asked.append(command) or text)
    path = str(tmp_path / "a.py")
    formatting.tidied(AFTER, BEFORE, path)
    assert asked == [["/bin/black", "--quiet", "--stdin-filename", path, "-"]]


@needs_ruff
def test_the_limit_of_a_project_is_kept_by_stage_8(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 72\n")
    program = tmp_path / "text_cnn.py"
    program.write_text((ROOT / "tests" / "ladder" / "programs" / "text_cnn.py").read_text())
    for stage in range(2, 9):
        chosen = [codemod for codemod in codemods().values() if codemod.stage == stage]
        for planned in make_plan([str(tmp_path)], chosen, tier=SafetyTier.REVIEW).changed:
            program.write_text(planned.migrated.text)
    text = program.read_text()
    assert "class TextCnnModel(keras.Model):" in text
    own = (ROOT / "tests" / "ladder" / "programs" / "text_cnn.py").read_text().splitlines()
    assert [line for line in text.splitlines() if len(line) > 72 and line not in own] == []
    again = formatting.tidied(text, text, str(program))
    assert again == text
