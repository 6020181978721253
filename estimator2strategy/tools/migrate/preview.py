"""A preview of codemods on a program: every file is read, and nothing is written.

Example:

    plan = make_plan(["trainer/"], chosen, tier=SafetyTier.SAFE)
    plan.changed[0].migrated.text
"""

from __future__ import annotations

import collections
import dataclasses
import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from estimator2strategy.legacy import python2
from estimator2strategy.tools.migrate import era, formatting
from estimator2strategy.tools.migrate.apply import MigratedFile, TooSlowError, apply
from estimator2strategy.tools.migrate.codemod import Codemod, SafetyTier
from estimator2strategy.tools.migrate.files import NotebookFile, TextFile, read
from estimator2strategy.tools.migrate.module import Facts, SharedLineError
from estimator2strategy.tools.reader import notebooks
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.python_files import NotChecked, Wanted, collect, neighbours
from estimator2strategy.tools.reader.source import UNREADABLE, NotebookError, Source, parse
from estimator2strategy.tools.reader.symbol_uses import blind_spots
from estimator2strategy.tools.untrusted.printable import printable

# Bytes of source whose trees are in memory at a time; a codemod sees one file, and those that it
# imports.
MOST_TOGETHER = 2**18


@dataclasses.dataclass(frozen=True)
class Planned:
    """One file, as it is and as it becomes."""

    file: TextFile
    shown: str
    migrated: MigratedFile


@dataclasses.dataclass(frozen=True)
class Place:
    """Something to be said of a line; 0 is the whole file."""

    path: str
    line: int
    message: str


@dataclasses.dataclass
class Plan:
    """The files of a program after migration.

    Attributes:
        files: The number of files that could be read.
        changed: Those of them that become other ones.
        counts: The number of changes of each codemod, by its name and their tier.
        withheld: The number of changes that each codemod has for `--tier review`.
        marks: The places left to the user, with lines of the files after migration.
        skipped: The files that could not be understood, and are left alone.
        unseen: Places where the program decides what it uses only when it runs.
        problems: The reasons why the tool could not do its job, if it could not.
        is_broken: True if a codemod failed in a file, so that no file may be written.
        changes: The names of the codemods, and the tier.
    """

    files: int = 0
    changed: list[Planned] = dataclasses.field(default_factory=list)
    counts: collections.Counter[tuple[str, SafetyTier]] = dataclasses.field(
        default_factory=collections.Counter
    )
    withheld: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    marks: list[Place] = dataclasses.field(default_factory=list)
    skipped: list[Place] = dataclasses.field(default_factory=list)
    unseen: list[Place] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)
    is_broken: bool = False
    changes: str = ""

    def add(self, planned: Planned) -> None:
        """Takes the results of a file; its texts only if they differ."""
        migrated = planned.migrated
        self.files += 1
        self.counts += migrated.counts
        self.withheld += migrated.withheld
        for mark in migrated.marks:
            where = planned.shown, mark.line
            if isinstance(planned.file, NotebookFile):
                where = notebooks.shown_cell(planned.shown, migrated.text, mark.line)
            self.marks.append(Place(*where, f"{mark.codemod}: {mark.message}"))
        if migrated.changed:
            self.changed.append(planned)


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
    for group in readable:
        for path in group:
            _migrate(path, chosen, tier, facts, plan)
        if len(groups) > 1:
            gc.collect()  # trees are cycles
    return plan


def _read(group: Sequence[Path], together: int, plan: Plan) -> tuple[list[Path], Facts]:
    """Those of the files that can be parsed, and the facts that they tell."""
    sources = {path: source for path in group if (source := _source(path, plan))}
    Project(sources.values(), together)  # names are followed from file to file
    blind = (found for source in sources.values() for found in blind_spots(source))
    plan.unseen += [Place(found.path, found.line, found.why) for found in blind]
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
            left_out.append(NotChecked(_shown(path), 0, why))
    plan.unseen += [Place(found.path, found.line, found.why) for found in left_out]


def _source(path: Path, plan: Plan) -> Source | None:
    """A file as the rules of `e2s check` see it; if it cannot be read, the plan says why."""
    try:
        file = read(path)
        if isinstance(file, NotebookFile):
            plan.unseen += [
                Place(f"{_shown(path)}#cell-{cell}", error.lineno or 0 if error else 0, why)
                for cell, error, why in file.notebook.unread
            ]
        return _parsed(file, plan.skipped)
    except NotebookError as error:
        plan.skipped.append(Place(_shown(path), 0, str(error)))
    except OSError as error:
        plan.problems.append(f"{printable(_shown(path))}: {error.strerror}")
    except SyntaxError as error:
        plan.skipped.append(Place(_shown(path), 0, f"its encoding cannot be told: {error}"))
    return None


def _migrate(
    path: Path, chosen: Sequence[Codemod], tier: SafetyTier, facts: Facts, plan: Plan
) -> None:
    """Adds to the plan what becomes of a file."""
    shown = _shown(path)
    try:
        file = read(path)
        finish = None if isinstance(file, NotebookFile) else formatting.tidied
        migrated = apply(file.text, chosen, path=str(path), tier=tier, facts=facts, finish=finish)
        file.encoded(migrated.text)
    except SharedLineError as error:
        why = "it stays as it is: give each statement of this line a line of its own"
        plan.skipped.append(Place(shown, error.line, why))
    except RecursionError as error:
        plan.skipped.append(Place(shown, 0, f"it is nested too deeply: {error}"))
    except (TooSlowError, NotebookError) as error:
        plan.skipped.append(Place(shown, 0, str(error)))
    except Exception as error:  # of ours
        plan.is_broken = True
        plan.problems.append(
            f"{printable(shown)}: stays as it is, a codemod failed ({error!r}); please report it"
        )
    else:
        plan.add(Planned(file, shown, migrated))


def _is_within(path: Path, within: list[str]) -> bool:
    """True if a file is one of these, or in one of these folders, whatever links lead to it."""
    real = os.path.realpath(path)
    return any(real == given or real.startswith(os.path.join(given, "")) for given in within)


def _parsed(file: TextFile, skipped: list[Place]) -> Source | None:
    shown = _shown(file.path)
    try:
        return parse(str(file.path), shown, file.text)
    except SyntaxError as error:
        lines = file.text.splitlines()
        line = error.lineno or 1
        what = python2.construct(error, lines[line - 1] if line <= len(lines) else "")
        why = f"this is Python 2: {what}. {python2.advice(error)}" if what else f"{error.msg}"
        skipped.append(Place(shown, line, why))
    except UNREADABLE as error:
        said = str(error) or "it is nested too deeply"
        skipped.append(Place(shown, 0, f"it cannot be parsed: {said}"))
    return None


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
