"""Every Python block of the README and of the migration guide runs as it is printed.

Blocks marked `python legacy` show TensorFlow 1.x code; those are only compiled. A block that starts
with an import is a program of its own, in a fresh process; others go on where the one before ended.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import io
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from estimator2strategy import __main__
from tests import fresh

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "estimator2strategy"
PAGES = [ROOT / "README.md", *sorted((ROOT / "migration_guide").glob("*.md"))]
HOW_TO = sorted((ROOT / "architecture").glob("*.md"))
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
        [fresh.python(), str(script)],
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


SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDES = [*PAGES, *sorted((ROOT / "examples").glob("**/README.md"))]


def e2s_commands(page: Path) -> list[list[str]]:
    """The words of each `e2s ...` line in the shell blocks of a page."""
    blocks = "\n".join(SHELL.findall(page.read_text())).replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in blocks.splitlines() if "e2s " in line]
    return [words[words.index("e2s") + 1 :] for words in lines if "e2s" in words]


# Options that are looked at before the command's own parser, which does not list them.
ANSWERED_FIRST = {("record", "--print")}


@functools.cache
def help_of(*command: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        __main__.main([*command, "--help"])
    return printed.getvalue()


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_the_documentation_have_these_options(page):
    for command, *words in e2s_commands(page):
        has_parts = command == "checkpoint" and words and not words[0].startswith("-")
        text = help_of(command, words[0]) if has_parts else help_of(command)
        for word in words:
            if word == "--program" or word.endswith(".py") or word == "-m":
                break  # what follows are the program's own flags
            if word.startswith("--") and word != "--":
                if (command, word) in ANSWERED_FIRST:
                    continue
                assert re.search(rf"{re.escape(word.partition('=')[0])}\b", text), (command, word)


def messages_of_the_package() -> str:
    """All texts in the source, in order, as one."""
    parts = []
    for path in sorted((ROOT / "estimator2strategy").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                texts = [part.value for part in node.values if isinstance(part, ast.Constant)]
                parts.append("".join(map(str, texts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                parts.append(node.value)
    return "\n".join(parts)


def test_troubleshooting_quotes_messages_of_the_package():
    page = (ROOT / "migration_guide" / "troubleshooting.md").read_text()
    ours = page.partition("## This package's")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in ours.splitlines() if line.startswith("| `")]
    quoted = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    source = messages_of_the_package()
    assert quoted
    assert [text for text in quoted if text not in source] == []


LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize(
    "page",
    [
        *PAGES,
        *HOW_TO,
        *sorted((ROOT / "architecture" / "rooms").glob("*.md")),
        *sorted((ROOT / "examples").glob("**/README.md")),
        *(
            ROOT / name
            for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
        ),
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page):
    links = LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


PATH = re.compile(r"`([\w./]+/[\w./]*|[\w./]+\.(?:py|md|csv|json))`")
MODULE = re.compile(r"python -m ([\w.]+)")


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_page_of_how_to_add_something_is_short_and_names_files_that_exist(page):
    text = page.read_text()
    assert len(text.splitlines()) <= 10
    paths = PATH.findall(text)
    assert paths
    assert [p for p in paths if not any((r / p).exists() for r in (ROOT, PACKAGE))] == []
    assert [m for m in MODULE.findall(text) if importlib.util.find_spec(m) is None] == []


def test_architecture_links_every_page_of_how_to_add_something():
    links = LINK.findall((ROOT / "ARCHITECTURE.md").read_text())
    assert {f"architecture/{page.name}" for page in HOW_TO} <= set(links)
