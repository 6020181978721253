"""The files of a program after migration, and what is to be said of them."""

from __future__ import annotations

import collections
import dataclasses
import os
from pathlib import Path

from estimator2strategy.tools.migrate.apply import MigratedFile
from estimator2strategy.tools.migrate.codemod import SafetyTier
from estimator2strategy.tools.migrate.files import NotebookFile, TextFile
from estimator2strategy.tools.reader import notebooks


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
