"""A preview of codemods on a program: every file is read, and nothing is written.

Example:

    plan = make_plan(["trainer/"], chosen, tier=SafetyTier.SAFE)
    plan.changed[0].migrated.text
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from estimator2strategy.legacy import python2
from estimator2strategy.tools.migrate import era
from estimator2strategy.tools.migrate.codemod import Codemod, SafetyTier
from estimator2strategy.tools.migrate.files import NotebookFile, TextFile, read
from estimator2strategy.tools.migrate.migration import Migration, Place, Plan, shown
from estimator2strategy.tools.migrate.module import Facts
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.python_files import (
    UNREADABLE,
    NotChecked,
    Wanted,
    collect,
    neighbours,
    parse,
)
from estimator2strategy.tools.reader.source import NotebookError, Source
from estimator2strategy.tools.reader.symbol_uses import blind_spots
from estimator2strategy.tools.untrusted.printable import printable

# Bytes of source whose trees are in memory at a time; a codemod sees one file, and those that it
# imports.
MOST_TOGETHER = 2**18


def make_plan(
    paths: Iterable[str],
    chosen: Sequence[Codemod],
    *,
    tier: SafetyTier,
    exclude: tuple[str, ...] = (),
    together: int = MOST_TOGETHER,
) -> Plan:
    """Applies codemods to files, and to all Python files in folders, in memory.

    Args:
        paths: The files and folders.
        chosen: The codemods, in the order in which they are applied.
        tier: The changes that are wanted.
        exclude: Patterns of paths to leave out.
        together: How many bytes of source are in memory, as trees of syntax, at a time.
    """
    plan = Plan(changes=" ".join([*(codemod.name for codemod in chosen), str(tier)]))
    facts = Facts()
    groups = list(neighbours(_collected(paths, exclude, plan), together))
    readable: list[list[Path]] = []
    for group in groups:
        parsed, of_group = _read(group, together, plan)
        readable.append(parsed)
        facts |= of_group
        if len(groups) > 1:
            gc.collect()  # trees are cycles
    migration = Migration(readable, tier, facts, plan)
    migration.apply(chosen)
    migration.finish()
    return plan


def _read(group: Sequence[Path], together: int, plan: Plan) -> tuple[list[Path], Facts]:
    """Those of the files that can be parsed, and the facts that they tell."""
    sources = {path: source for path in group if (source := _source(path, plan))}
    Project(sources.values(), together)  # names are followed from file to file
    blind = (spot for source in sources.values() for spot in blind_spots(source))
    plan.unseen += [Place(spot.path, spot.line, spot.why) for spot in blind]
    return list(sources), era.facts(sources.values())


def _collected(paths: Iterable[str], exclude: tuple[str, ...], plan: Plan) -> Iterator[Path]:
    """The Python files that are given, or are in folders; the plan tells what is left out."""
    left_out: list[NotChecked] = []
    paths = list(paths)
    within = [os.path.realpath(path) for path in paths]
    for path in collect(paths, Wanted(exclude), plan.problems, left_out):
        if _is_within(path, within):
            yield path
        else:
            why = "a link to a file outside of what is given"
            left_out.append(NotChecked(shown(path), 0, why))
    plan.unseen += [Place(skipped.path, skipped.line, skipped.why) for skipped in left_out]


def _source(path: Path, plan: Plan) -> Source | None:
    """A file as the rules of `e2s check` see it; if it cannot be read, the plan says why."""
    try:
        file = read(path)
        if isinstance(file, NotebookFile):
            plan.unseen += [
                Place(f"{shown(path)}#cell-{cell}", error.lineno or 0 if error else 0, why)
                for cell, error, why in file.notebook.unread
            ]
        return _parsed(file, plan.skipped)
    except NotebookError as error:
        plan.skipped.append(Place(shown(path), 0, str(error)))
    except OSError as error:
        plan.problems.append(f"{printable(shown(path))}: {error.strerror}")
    except SyntaxError as error:
        plan.skipped.append(Place(shown(path), 0, f"its encoding cannot be told: {error}"))
    return None


def _is_within(path: Path, within: list[str]) -> bool:
    """True if a file is one of these, or in one of these folders, whatever links lead to it."""
    real = os.path.realpath(path)
    return any(real == given or real.startswith(os.path.join(given, "")) for given in within)


def _parsed(file: TextFile, skipped: list[Place]) -> Source | None:
    name = shown(file.path)
    try:
        return parse(str(file.path), name, file.text)
    except SyntaxError as error:
        lines = file.text.splitlines()
        line = error.lineno or 1
        what = python2.construct(error, lines[line - 1] if line <= len(lines) else "")
        why = f"this is Python 2: {what}. {python2.advice(error)}" if what else f"{error.msg}"
        skipped.append(Place(name, line, why))
    except UNREADABLE as error:
        said = str(error) or "it is nested too deeply"
        skipped.append(Place(name, 0, f"it cannot be parsed: {said}"))
    return None
