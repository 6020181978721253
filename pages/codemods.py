"""The made parts of the page about the codemods, from the codemods."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator

import pages
from estimator2strategy.tools.migrate.codemod import (
    STAGES,
    WITHOUT_CHANGES,
    Codemod,
    Sample,
    codemods,
)
from pages import replacements


def page() -> dict[str, str]:
    """`codemods.md`, with a table of all codemods and a section for each."""
    stages = []
    for stage, what in STAGES.items():
        if stage not in WITHOUT_CHANGES:
            stages += [f"## Stage {stage}: {what}\n", *map(_section, _of(stage))]
    table = pages.table(("stage", "codemod", "tier", "does"), _rows())
    made = {"codemods": table, "stages": "\n".join(stages), **replacements.parts()}
    return pages.page("codemods.md", made)


def _of(stage: int) -> list[Codemod]:
    return [codemod for codemod in codemods().values() if codemod.stage == stage]


def _rows() -> Iterator[tuple[str, ...]]:
    for stage, what in STAGES.items():
        if stage in WITHOUT_CHANGES:
            yield str(stage), "", "", f"{what}: `{WITHOUT_CHANGES[stage]}`"
        for codemod in _of(stage):
            link = f"[{codemod.name}](#{codemod.name})"
            yield str(stage), link, str(codemod.tier), codemod.title


def _section(codemod: Codemod) -> str:
    lines = [f"### {codemod.name}", "", f"{codemod.title}. ({codemod.tier})", ""]
    lines += [textwrap.fill(codemod.why, 100, break_long_words=False), ""]
    what = "Proof" if str(codemod.tier) == "safe" else "To review"
    lines += [textwrap.fill(f"**{what}.** {codemod.proof}", 100, break_long_words=False), ""]
    for sample in codemod.samples:
        lines += ["```diff", *_diff(sample), "```", ""]
    return "\n".join(lines)


def _diff(sample: Sample) -> list[str]:
    before, after = sample.before.splitlines(), sample.after.splitlines()
    return [
        line.rstrip()
        for line in difflib.ndiff(before, after, charjunk=None)
        if not line.startswith("?")
    ]
