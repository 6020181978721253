"""The files of a program on their way through codemods; nothing is written.

A codemod sees one file after the other. One that changes files together is done with all files
before the next begins.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import gc
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from estimator2strategy.tools.migrate import formatting
from estimator2strategy.tools.migrate.apply import (
    MigratedFile,
    TooSlowError,
    apply,
    apply_together,
    without_marks,
)
from estimator2strategy.tools.migrate.codemod import Codemod, SafetyTier
from estimator2strategy.tools.migrate.files import NotebookFile, TextFile, read
from estimator2strategy.tools.migrate.module import Facts, SharedLineError
from estimator2strategy.tools.migrate.program import Texts
from estimator2strategy.tools.reader import notebooks
from estimator2strategy.tools.reader.source import NotebookError
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


def shown(path: Path) -> str:
    """The path of a file as it is told."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


class Migration:
    """Takes files through codemods.

    Args:
        groups: The files, in groups whose trees of syntax are in memory together.
        tier: The changes that are wanted.
        facts: Facts about the files together.
        plan: Where what becomes of them is told.
    """

    def __init__(
        self, groups: Sequence[Sequence[Path]], tier: SafetyTier, facts: Facts, plan: Plan
    ):
        self._groups, self._tier, self._facts, self._plan = groups, tier, facts, plan
        self._files: dict[Path, MigratedFile] = {}  # those of which something is to be told
        self._failed: set[Path] = set()

    def apply(self, chosen: Sequence[Codemod]) -> None:
        """Applies codemods, in their order."""
        for is_of_program, some in itertools.groupby(chosen, lambda one: one.is_of_program):
            if is_of_program:
                for codemod in some:
                    self._apply_together(codemod)
            else:
                self._apply_one_by_one(list(some))

    def _paths(self) -> Iterator[Path]:
        """The files that no codemod has failed in; a group's trees are forgotten behind it."""
        for group in self._groups:
            yield from (path for path in group if path not in self._failed)
            if len(self._groups) > 1:
                gc.collect()  # trees are cycles

    def _text(self, path: Path) -> str:
        return self._files[path].text if path in self._files else read(path).text

    def _apply_one_by_one(self, chosen: Sequence[Codemod]) -> None:
        for path in self._paths():
            with self._reasons(path):
                text = self._text(path)
                migrated = apply(text, chosen, path=str(path), tier=self._tier, facts=self._facts)
                self._take({path: migrated})

    def _apply_together(self, codemod: Codemod) -> None:
        paths = list(self._paths())
        texts = Texts(map(str, paths), lambda path: self._text(Path(path)))
        for path in paths:
            self._unmark(path, codemod)
        for path in paths:
            with self._reasons(path):
                if codemod.may_find(self._text(path)):
                    results = apply_together(
                        texts, str(path), codemod, tier=self._tier, facts=self._facts
                    )
                    self._take({Path(one): migrated for one, migrated in results.items()})

    def _unmark(self, path: Path, codemod: Codemod) -> None:
        text = self._text(path)
        unmarked = without_marks(text, codemod.name)
        if unmarked != text:
            self._take({path: MigratedFile(text, unmarked)})

    def _take(self, taken: Mapping[Path, MigratedFile]) -> None:
        """Keeps what has become of files, all of them or none."""
        for path, migrated in taken.items():
            if migrated.changed:
                read(path).encoded(migrated.text)
        for path, migrated in taken.items():
            if path in self._files:
                self._files[path] = self._files[path].then(migrated)
            elif migrated.changed or migrated.counts or +migrated.withheld or migrated.marks:
                self._files[path] = migrated

    @contextlib.contextmanager
    def _reasons(self, path: Path) -> Iterator[None]:
        """Tells the plan why a file cannot be changed."""
        name, skipped = shown(path), self._plan.skipped
        try:
            yield
            return
        except SharedLineError as error:
            why = "it stays as it is: give each statement of this line a line of its own"
            skipped.append(Place(name, error.line, why))
        except RecursionError as error:
            skipped.append(Place(name, 0, f"it is nested too deeply: {error}"))
        except (TooSlowError, NotebookError) as error:
            skipped.append(Place(name, 0, str(error)))
        except Exception as error:  # of ours
            self._plan.is_broken = True
            self._plan.problems.append(
                f"{printable(name)}: stays as it is, a codemod failed ({error!r}); please report it"
            )
        self._failed.add(path)

    def finish(self) -> None:
        """Adds the files to the plan, in shape."""
        for path in (path for group in self._groups for path in group):
            migrated = self._files.get(path)
            if migrated is None:
                self._plan.files += path not in self._failed
                continue
            with self._reasons(path):
                file = read(path)
                if not isinstance(file, NotebookFile):
                    migrated = migrated.finished(formatting.tidied, str(path))
                self._plan.add(Planned(file, shown(path), migrated))
