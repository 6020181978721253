"""Every Python block of the README and of the migration guide runs as it is printed.

Blocks marked `python legacy` show TensorFlow 1.x code; those are only compiled. A block that starts
with an import is a program of its own, in a fresh process; others go on where the one before ended.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "migration_guide").glob("*.md"))]
BLOCK = re.compile(r"^```python(?P<legacy> legacy)?\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def programs(page: Path) -> list[str]:
    """The programs of a page, each padded so that line numbers are those of the page."""
    text = page.read_text()
    found: list[str] = []
    for block in BLOCK.finditer(text):
        code, first_line = block["code"], text.count("\n", 0, block.start("code"))
        if block["legacy"]:
            compile(code, str(page), "exec")
        elif code.startswith(("import ", "from ")) or not found:
            found.append("\n" * first_line + code)
        else:
            found[-1] += "\n" * (first_line - found[-1].count("\n")) + code
    return found


CASES = [
    pytest.param(page, program, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, program in enumerate(programs(page), start=1)
]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "program"), CASES)
def test_code_of_the_documentation_runs(page, program, tmp_path):
    script = tmp_path / page.name
    script.write_text(program)
    environment = {
        **os.environ,
        "E2S_EMULATE_TPU_CORES": "8",
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    result = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_readme_starts_with_the_two_commands():
    commands = re.search(r"```sh\n(.*?)```", PAGES[0].read_text(), re.DOTALL)[1]
    assert [line.partition("#")[0].strip() for line in commands.splitlines()] == [
        "make demo",
        "make test",
    ]


LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "examples/README.md"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page):
    links = LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
