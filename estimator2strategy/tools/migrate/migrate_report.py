"""The output of `e2s migrate`: the diff, the counts, the places left to the user."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.plan import Place, Plan, Planned
from estimator2strategy.tools.migrate.stages import STAGES
from estimator2strategy.tools.untrusted.printable import printable, printable_lines

# A piece of text, and its style for rich.
Segment = tuple[str, str]
_DIFF_STYLES = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
# How many places of a kind are listed.
_LISTED = 50


def diff(planned: Planned) -> Iterator[Segment]:
    """The unified diff of a file, which `git apply` or `patch -p1` takes."""
    before, after = _lines(planned.migrated.before), _lines(planned.migrated.text)
    shown = printable(planned.shown).lstrip("/")
    for line in difflib.unified_diff(before, after, f"a/{shown}", f"b/{shown}"):
        style = next((s for start, s in _DIFF_STYLES.items() if line.startswith(start)), "")
        yield printable_lines(line), style
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n", "dim"


def _lines(text: str) -> list[str]:
    """Lines as git and patch count them; a form feed ends none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return lines if lines[-1] else lines[:-1]


def summary(plan: Plan, *, written: bool, tier: SafetyTier) -> Iterator[Segment]:
    """Counts by codemod, then what is left to do, with file and line."""
    counts = plan.counts
    stage = None
    for name, codemod in codemods().items():
        safe, review = counts[name, SafetyTier.SAFE], counts[name, SafetyTier.REVIEW]
        if not safe + review:
            continue
        if codemod.stage != stage:
            stage = codemod.stage
            yield f"\nStage {stage}: {STAGES[stage]}\n", "bold"
        sure = f"{safe} safe" if not review else f"{safe} safe, {review} to review"
        yield f"  {name:24} {_number(safe + review, 'change')} ({sure})\n", ""
    safe = sum(number for (_, tier_), number in counts.items() if tier_ == SafetyTier.SAFE)
    total = counts.total()
    files = f"{len(plan.changed)} of {_number(plan.files, 'file')}"
    yield (
        f"\n{_number(total, 'change')} in {files}: {safe} proven safe, {total - safe} to review.\n",
        "bold green" if total == safe else "bold yellow",
    )
    withheld = plan.withheld.total()
    if withheld and tier < SafetyTier.REVIEW:
        names = ", ".join(name for name, number in plan.withheld.items() if number)
        yield f"{_number(withheld, 'more change')} to review, with --tier review ({names}).\n", ""
    lines = "" if written else " (lines of the files as --write leaves them)"
    yield from _places(f"left to you, marked with TODO(e2s){lines}", plan.marks, "yellow")
    yield from _places("left alone, because they cannot be read", plan.skipped, "yellow")
    yield from _places("not seen into", plan.unseen, "dim")
    for problem in plan.problems:
        yield printable_lines(f"Could not be done: {problem}\n"), "bold red"
    if plan.changed and not written:
        yield "Nothing is written yet: the same command with --write does it.\n", "cyan"


def _places(what: str, places: Iterable[Place], style: str) -> Iterator[Segment]:
    places = list(places)
    if not places:
        return
    yield f"{_number(len(places), 'place')} {what}:\n", ""
    for place in places[:_LISTED]:
        path = printable(place.path)
        where = f"{path}:{place.line}" if place.line else path
        yield printable_lines(f"  {where}: {place.message}\n"), style
    if len(places) > _LISTED:
        yield f"  and {len(places) - _LISTED} more\n", style


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
