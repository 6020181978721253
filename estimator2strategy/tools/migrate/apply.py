"""Applies codemods to the text of a file, until nothing is left for them to change.

Example:

    migrated = apply(text, chosen, path="train.py", tier=SafetyTier.SAFE)
    migrated.text, migrated.counts
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Sequence

from estimator2strategy.tools.migrate import todo
from estimator2strategy.tools.migrate.codemod import (
    Change,
    Codemod,
    SafetyTier,
    Todo,
)
from estimator2strategy.tools.migrate.module import Facts, Module, with_imports

# How often a codemod may find something in what it made itself: calls in calls in calls.
_ROUNDS = 100
# The seconds of computing for one file: a machine that sleeps takes nothing from them.
_SECONDS = 60
# Codemods that write more than a line or two.
_WRITES_ANEW = ("model-fn-to-keras",)


class TooSlowError(Exception):
    """A file is left alone, because its changes would take too long."""


@dataclasses.dataclass(frozen=True)
class Mark:
    """A place that is left to the user.

    Attributes:
        line: The mark's own, in the file as it becomes.
    """

    line: int
    codemod: str
    message: str


@dataclasses.dataclass(frozen=True)
class MigratedFile:
    """A file after migration.

    Attributes:
        before, text: The file as it was, and as it becomes.
        counts: The number of changes of each codemod, by its name and their tier.
        withheld: The number of its changes in a tier that was not asked for.
        marks: The places left to the user.
    """

    before: str
    text: str
    counts: collections.Counter[tuple[str, SafetyTier]]
    withheld: collections.Counter[str]
    marks: tuple[Mark, ...]

    @property
    def changed(self) -> bool:
        return self.text != self.before


def apply(
    text: str,
    chosen: Iterable[Codemod],
    *,
    path: str = "program.py",
    tier: SafetyTier = SafetyTier.REVIEW,
    facts: Facts = Facts(),  # noqa: B008
    finish: Callable[[str, str, str], str] | None = None,
) -> MigratedFile:
    """Applies codemods to a file's text, one after the other.

    Args:
        text: The text.
        chosen: The codemods.
        path: The path of the file.
        tier: The changes that are wanted.
        facts: Facts about its program.
        finish: Puts a text that has become another program into shape: of it, the text before and
            the path.

    Raises:
        SyntaxError, ValueError, RecursionError: The file cannot be parsed.
        TooSlowError: It takes too long.
        RuntimeError: A codemod made something that cannot be parsed, or never ends.
    """
    before = text
    counts: collections.Counter[tuple[str, SafetyTier]] = collections.Counter()
    withheld: collections.Counter[str] = collections.Counter()
    until = time.process_time() + _SECONDS
    # Most codemods find nothing in most files: what one has parsed serves the next.
    parsed = functools.lru_cache(maxsize=1)(lambda text: Module.parse(path, text, facts))
    for codemod in chosen:
        text = _apply(text, codemod, parsed, tier, counts, withheld, until)
    if finish is not None and any(name in _WRITES_ANEW for name, _ in counts):
        text = finish(text, before, path)
    marks = tuple(Mark(*found) for found in todo.marks(text))
    return MigratedFile(before, text, counts, withheld, marks)


def _apply(
    text: str,
    codemod: Codemod,
    parsed: Callable[[str], Module],
    tier: SafetyTier,
    counts: collections.Counter[tuple[str, SafetyTier]],
    withheld: collections.Counter[str],
    until: float,
) -> str:
    text = todo.without_marks(text, codemod.name)
    for _ in range(_ROUNDS):
        if time.process_time() > until:
            raise TooSlowError(f"its changes take longer than {_SECONDS} s; it stays as it is")
        module = parsed(text)
        found = list(codemod.find(module))
        changes = [f for f in found if isinstance(f, Change)]
        wanted = [change for change in changes if (change.tier or codemod.tier) <= tier]
        if not wanted:
            withheld[codemod.name] += len(changes)
            todos = [f for f in found if isinstance(f, Todo) and (f.tier or codemod.tier) <= tier]
            return todo.with_marks(module, codemod.name, todos)
        innermost = _innermost(wanted)
        counts.update((codemod.name, change.tier or codemod.tier) for change in innermost)
        text = _edited(module, innermost)
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise RuntimeError(f"{codemod.name} made line {error.lineno} unreadable") from error
        for done in codemod.settles:
            text = todo.without_marks(text, done)
    raise RuntimeError(f"{codemod.name} finds no end")


def _innermost(changes: Sequence[Change]) -> list[Change]:
    """The changes that contain no other; the next round finds those around them again."""
    first_of = {(change.start, change.end): change for change in reversed(changes)}
    in_order = sorted(first_of.values(), key=lambda change: (change.start, -change.end))
    behind = [*in_order[1:], None]
    kept = {
        change
        for change, follower in zip(in_order, behind, strict=True)
        if follower is None or follower.start >= change.end
    }
    return [change for change in changes if change in kept]


def _edited(module: Module, changes: Sequence[Change]) -> str:
    pieces, at = [], 0
    for change in sorted(changes, key=lambda change: change.start):
        by = change.by.replace("\r\n", "\n").replace("\n", module.newline)
        pieces += [module.text[at : change.start], by]
        at = change.end
    needed = [imported for change in changes for imported in change.imports]
    return with_imports("".join([*pieces, module.text[at:]]), needed)
