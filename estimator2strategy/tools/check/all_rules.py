"""All rules: the rows of `rules/index.csv`; `rules/redirects.csv` has those that others find."""

from __future__ import annotations

import csv
import dataclasses
import functools
from collections.abc import Iterable, Iterator

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule import FOLDER, Rule


@functools.cache
def rules() -> dict[str, Rule]:
    """All rules, by id."""
    with (FOLDER / "index.csv").open(encoding="utf-8", newline="") as file:
        found = [_rule(**row) for row in csv.DictReader(file)]
    return {rule.id: rule for rule in found}


def _rule(severity: str, level: str, needs: str, **row: str) -> Rule:
    weight, evidence = Severity[severity.upper()], Evidence[level.upper()]
    return Rule(severity=weight, level=evidence, needs=tuple(needs.split()), **row)


@dataclasses.dataclass(frozen=True)
class Redirect:
    """A rule of old whose cases another tool finds: its id goes on to be understood.

    Attributes:
        id, name: As the rule had them.
        companion: The tool and its rule: "ruff's PLR1708".
        finds: The cases of both.
    """

    id: str
    name: str
    companion: str
    finds: str


@functools.cache
def redirects() -> dict[str, Redirect]:
    """The rules that another tool has today, by id."""
    with (FOLDER / "redirects.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: Redirect(**row) for row in csv.DictReader(file)}


def redirected(selector: str) -> Redirect | None:
    """The redirect of a rule, by its id or name."""
    return next((r for r in redirects().values() if selector in (r.id, r.name)), None)


def rules_of(level: Evidence) -> list[Rule]:
    """The rules whose findings rest on this evidence."""
    return [rule for rule in rules().values() if rule.level == level]


def matching(selectors: Iterable[str]) -> Iterator[str]:
    """The ids of the rules that an id, the beginning of one, a name or a family selects."""
    for selector in selectors:
        for known in rules().values():
            if known.id.startswith(selector) or selector in (known.name, known.family):
                yield known.id
