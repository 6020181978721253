"""The results of a codemod: edits, and the places that it leaves to the user."""

from __future__ import annotations

import ast
import dataclasses
import enum


class SafetyTier(enum.IntEnum):
    """The certainty that the program still does what it did."""

    SAFE = 1  # the same function under another name, or proven equal by a test
    REVIEW = 2  # may mean something else, in ways that the codemod's page names

    def __str__(self) -> str:
        return self.name.lower()


@dataclasses.dataclass(frozen=True, eq=False)
class Change:
    """One edit of a file's text.

    Attributes:
        start, end: The first character that goes, and the first behind it that stays.
        by: The text in their place.
        imports: Imports that it needs, each as (module, name or None, alias or None).
        tier: Its certainty, where that is not the codemod's.
        path: The file, where that may be another than the one that was looked at.
    """

    start: int
    end: int
    by: str
    imports: tuple[tuple[str, str | None, str | None], ...] = ()
    tier: SafetyTier | None = None
    path: str | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Todo:
    """A place that is left to the user, and why; marked with a comment above its statement."""

    node: ast.AST
    message: str
    tier: SafetyTier | None = None
