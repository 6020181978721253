"""A preview of codemods on a program: every file is read, and nothing is written.

Example:

    plan = make_plan(["trainer/"], chosen, tier=SafetyTier.SAFE)
    plan.files[0].migrated.text
"""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import libcst as cst

from estimator2strategy.legacy import python2
from estimator2strategy.tools.check.check_report import NotChecked
from estimator2strategy.tools.check.checking import blind_spots
from estimator2strategy.tools.check.project import Project
from estimator2strategy.tools.check.python_files import collect
from estimator2strategy.tools.check.settings import Settings
from estimator2strategy.tools.check.source import UNREADABLE, Source, parse
from estimator2strategy.tools.migrate import era
from estimator2strategy.tools.migrate.apply import MigratedFile, TooSlowError, apply
from estimator2strategy.tools.migrate.codemod import Codemod, SafetyTier
from estimator2strategy.tools.migrate.files import TextFile, read
from estimator2strategy.tools.untrusted.printable import printable


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


@dataclasses.dataclass(frozen=True)
class Plan:
    """The files of a program after migration.

    Attributes:
        files: The files that could be read.
        skipped: The files that could not be understood, and are left alone.
        unseen: Places where the program decides what it uses only when it runs.
        problems: The reasons why the tool could not do its job, if it could not.
    """

    files: tuple[Planned, ...]
    skipped: tuple[Place, ...] = ()
    unseen: tuple[Place, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def changed(self) -> list[Planned]:
        return [planned for planned in self.files if planned.migrated.changed]

    @property
    def counts(self) -> collections.Counter[tuple[str, SafetyTier]]:
        """The number of changes of each codemod, by its name and their tier."""
        return sum((p.migrated.counts for p in self.files), collections.Counter())

    @property
    def withheld(self) -> collections.Counter[str]:
        """The number of changes that each codemod has for `--tier review`."""
        return sum((p.migrated.withheld for p in self.files), collections.Counter())

    def marks(self) -> list[Place]:
        """The places left to the user, with lines of the files after migration."""
        return [
            Place(p.shown, m.line, f"{m.codemod}: {m.message}")
            for p in self.files
            for m in p.migrated.marks
        ]


def make_plan(
    paths: Iterable[str],
    chosen: Sequence[Codemod],
    *,
    tier: SafetyTier,
    exclude: tuple[str, ...] = (),
) -> Plan:
    """Applies codemods to files, and to all Python files in folders, in memory."""
    problems: list[str] = []
    skipped: list[Place] = []
    left_out: list[NotChecked] = []
    files = _read(paths, exclude, problems, skipped, left_out)
    sources = []
    for file in list(files):
        source = _parsed(file, skipped)
        if source is None:
            files.remove(file)
        else:
            sources.append(source)
    Project(sources)  # names are followed from file to file
    facts = era.facts(sources)
    planned = []
    for file in files:
        try:
            migrated = apply(file.text, chosen, path=str(file.path), tier=tier, facts=facts)
            file.encoded(migrated.text)
        except (cst.ParserSyntaxError, RecursionError) as error:
            skipped.append(Place(_shown(file.path), 0, f"libcst cannot read it: {error}"))
        except TooSlowError as error:
            skipped.append(Place(_shown(file.path), 0, str(error)))
        except Exception as error:  # of ours: the file stays as it is, and so do the others
            problems.append(
                f"{printable(_shown(file.path))}: stays as it is, a codemod failed ({error!r}); "
                "please report it"
            )
        else:
            planned.append(Planned(file, _shown(file.path), migrated))
    blind = (found for source in sources for found in blind_spots(source))
    unseen = [Place(found.path, found.line, found.why) for found in (*left_out, *blind)]
    return Plan(tuple(planned), tuple(skipped), tuple(unseen), tuple(problems))


def _read(
    paths: Iterable[str], exclude: tuple[str, ...], problems: list[str], skipped: list[Place],
    left_out: list[NotChecked],
) -> list[TextFile]:  # fmt: skip
    files = []
    paths = list(paths)
    within = [os.path.realpath(path) for path in paths]
    for path in collect(paths, Settings(exclude=exclude), problems, left_out):
        if not _is_within(path, within):
            left_out.append(
                NotChecked(_shown(path), 0, "a link to a file outside of what is given")
            )
            continue
        try:
            files.append(read(path))
        except OSError as error:
            problems.append(f"{printable(_shown(path))}: {error.strerror}")
        except SyntaxError as error:
            skipped.append(Place(_shown(path), 0, f"its encoding cannot be told: {error}"))
    return files


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
        why = f"this is Python 2: {what}. {python2.CONVERT}" if what else f"{error.msg}"
        skipped.append(Place(shown, line, why))
    except UNREADABLE as error:
        said = str(error) or "it is nested too deeply"
        skipped.append(Place(shown, 0, f"it cannot be parsed: {said}"))
    return None


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
