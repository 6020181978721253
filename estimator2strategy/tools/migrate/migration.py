"""The files of a program on their way through codemods; nothing is written.

A codemod sees one file after the other. One that changes files together is done with all files
before the next begins.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from estimator2strategy.tools.migrate import formatting, todo
from estimator2strategy.tools.migrate.apply import (
    MigratedFile,
    TooSlowError,
    apply,
    apply_together,
)
from estimator2strategy.tools.migrate.codemod import Codemod, SafetyTier
from estimator2strategy.tools.migrate.files import NotebookFile, read
from estimator2strategy.tools.migrate.module import Facts, SharedLineError
from estimator2strategy.tools.migrate.plan import Place, Plan, Planned, shown
from estimator2strategy.tools.migrate.program import Texts
from estimator2strategy.tools.reader.source import NotebookError
from estimator2strategy.tools.untrusted.printable import printable


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
                    found = apply_together(
                        texts, str(path), codemod, tier=self._tier, facts=self._facts
                    )
                    self._take({Path(one): migrated for one, migrated in found.items()})

    def _unmark(self, path: Path, codemod: Codemod) -> None:
        text = self._text(path)
        unmarked = todo.without_marks(text, codemod.name)
        if unmarked != text:
            self._take({path: MigratedFile(text, unmarked)})

    def _take(self, found: Mapping[Path, MigratedFile]) -> None:
        """Keeps what has become of files, all of them or none."""
        for path, migrated in found.items():
            if migrated.changed:
                read(path).encoded(migrated.text)
        for path, migrated in found.items():
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
