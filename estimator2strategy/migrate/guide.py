"""Writes the page of the migration guide about the codemods, from the codemods.

python -m estimator2strategy.migrate.guide        # into migration_guide/codemods.md
"""

from __future__ import annotations

import difflib
import sys
import textwrap
from pathlib import Path

from estimator2strategy.migrate.rule import Rule, Sample, rules
from estimator2strategy.migrate.stages import STAGES, WITHOUT_CHANGES

_PAGE = Path(__file__).resolve().parents[2] / "migration_guide" / "codemods.md"

_INTRODUCTION = """\
# Codemods: `e2s migrate`

<!-- Made by `python -m estimator2strategy.migrate.guide`. -->

Running unchanged buys time. `e2s migrate` rewrites a program towards TensorFlow 2 in small steps,
each of which leaves a program that runs. It needs libcst:
`pip install 'estimator2strategy[migrate]'`.

```sh
e2s migrate trainer/                          # the diff of the next stage; nothing is written
e2s migrate --stage 2 trainer/ --write        # do it, in a clean git tree
e2s migrate --list                            # all codemods
```

- **A dry run is the default.** `--write` refuses a git tree with changes that are not committed
  (`--allow-dirty`), and a file that is not what the last dry run showed. Files are written in one
  step, or not at all.
- **Two tiers.** `safe` (the default) changes only what is proven to do the same: the same function
  under another name, or equal numbers in a test. `--tier review` also changes what may mean
  something else, in the ways that the codemod's section names. The summary counts both.
- **What it cannot decide, it leaves**, with a comment `# TODO(e2s): codemod: what to do` above the
  line, and lists with file and line. The next run takes a comment away when its reason is gone.
- **What it cannot read, it leaves alone**, and says so: Python 2, files whose encoding is not what
  they say. Names that a program makes up when it runs (`getattr(tf, name)`) are listed as not seen
  into.
- **A second run changes nothing.** Exit code 0: nothing is left; 1: changes (in a dry run), or
  places left to you; 2: it could not be done. So `e2s migrate --stage 2 --quiet trainer/` checks
  in CI that nobody goes back.

After each stage run the program's tests, and compare a short run with the one before: the same seed
and the same checkpoint give the same losses after each safe stage.
"""


def page() -> str:
    """The text of the page."""
    parts = [_INTRODUCTION, _table()]
    for stage, what in STAGES.items():
        if stage not in WITHOUT_CHANGES:
            parts.append(f"## Stage {stage}: {what}\n")
            parts += [_section(rule) for rule in rules().values() if rule.stage == stage]
    return "\n".join(parts)


def _table() -> str:
    lines = ["| stage | codemod | tier | does |", "| --- | --- | --- | --- |"]
    for stage, what in STAGES.items():
        if stage in WITHOUT_CHANGES:
            lines.append(f"| {stage} | | | {what}: `{WITHOUT_CHANGES[stage]}` |")
        lines += [
            f"| {stage} | [{rule.name}](#{rule.name}) | {rule.tier} | {rule.title} |"
            for rule in rules().values()
            if rule.stage == stage
        ]
    return "\n".join(lines) + "\n"


def _section(rule: Rule) -> str:
    lines = [f"### {rule.name}", "", f"{rule.title}. ({rule.tier})", ""]
    lines += [textwrap.fill(rule.why, 100, break_long_words=False), ""]
    what = "Proof" if str(rule.tier) == "safe" else "To review"
    lines += [textwrap.fill(f"**{what}.** {rule.proof}", 100, break_long_words=False), ""]
    for sample in rule.samples:
        lines += ["```diff", *_diff(sample), "```", ""]
    return "\n".join(lines)


def _diff(sample: Sample) -> list[str]:
    before, after = sample.before.splitlines(), sample.after.splitlines()
    return [
        line.rstrip()
        for line in difflib.ndiff(before, after, charjunk=None)
        if not line.startswith("?")
    ]


if __name__ == "__main__":
    _PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{_PAGE}\n")
