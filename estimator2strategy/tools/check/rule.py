"""Rules: a row of `rules/index.csv` each, a page of `rules/texts/`, and a function that finds.

    E2S106,star-import,...,rules.tensorflow.tensorflow_names:star_import,...

`rules/texts/E2S106.md` says why and what to do, and has a program with findings, these findings,
and a program without. The function stands in the module that the row names, which is imported when
the rule is first used; it is called `find` if the row names no other:

    def star_import(source, context):
        for star in source.stars:
            yield Hit(star.node, "`import *` hides which names are meant")

Of a rule about a recorded graph it gets a `levels.recorded_graph.Recorded`, and its hits have an op
as node. Where the row names a module that is no rule's, that module reports the findings itself.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from estimator2strategy.tools.check.check_report import Evidence, Severity

_BLOCK = re.compile(r"^```(?:python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class RuleText(NamedTuple):
    """The sections of a rule's page.

    Attributes:
        why: The failure that follows, and the evidence for it.
        fix: The remedy.
        flagged, clean: A program with a finding, and the same without; None for a rule that no
            source can show.
        findings: The lines of the findings in `flagged`: `line:column id severity: message`.
    """

    why: str
    fix: str
    flagged: str | None = None
    clean: str | None = None
    findings: tuple[str, ...] = ()


def read_text(path: Path) -> RuleText:
    """The text of a page."""
    found = sections(path.read_text(encoding="utf-8"))
    flagged, clean = (blocks(found.get(name, "")) for name in ("Flagged", "Clean"))
    return RuleText(
        " ".join(found["Why"].split()),
        " ".join(found["Fix"].split()),
        next(iter(flagged), None),
        next(iter(clean), None),
        tuple("".join(flagged[1:]).splitlines()),
    )


def sections(page: str) -> dict[str, str]:
    """Heading of the second level -> what is below it."""
    _, *parts = re.split(r"^## ", page, flags=re.MULTILINE)
    return {head: text for head, _, text in (part.partition("\n") for part in parts)}


def blocks(section: str) -> list[str]:
    """The fenced blocks of a section."""
    return _BLOCK.findall(section)


GUIDE = "migration_guide"
# The need of a rule that has cases in files which import any library.
ANY_LIBRARY = "import"
FOLDER = Path(__file__).parent / "rules"


class Hit(NamedTuple):
    """One case that a rule found: a node or a line, and the message.

    A `severity` or `fix` that is None is the rule's own. In a recorded graph `node` is an op, which
    was made at the line in question, or a function that is defined there, or None for the whole
    model_fn.
    """

    node: Any
    message: str
    severity: Severity | None = None
    fix: str | None = None


@dataclasses.dataclass(frozen=True)
class Rule:
    """A thing to find: a row of the index.

    Attributes:
        id: Never changes its meaning, and is never used again: "E2S201".
        name: The same in words, for people: "fixed-batch-size".
        family: The group that selects it with others: "tpu".
        severity: Of a finding, unless the finding says otherwise.
        level: The evidence that its findings rest on.
        target: The target for which the samples are checked.
        found_by: The module below `tools/check` that finds its cases; "module:function" if the
            function is not `find`, because rules that ask the same share a module.
        needs: Words of which a file of the program has one, or the rule has no case.
        guide: The page of the migration guide that says more; "" if there is none.
        title: The kind of case that it finds, in one line.
    """

    id: str
    name: str
    family: str
    severity: Severity
    level: Evidence
    target: str
    found_by: str
    needs: tuple[str, ...]
    guide: str
    title: str

    @property
    def page(self) -> str:
        """The page and heading that document it, relative to the repository."""
        return f"{GUIDE}/rules/{self.id[:4].lower()}.md#{self.id.lower()}-{self.name}"

    @functools.cached_property
    def text(self) -> RuleText:
        """The failure that follows, the remedy, and samples."""
        return read_text(FOLDER / "texts" / f"{self.id}.md")

    @property
    def fix(self) -> str:
        """The remedy, unless a finding has its own."""
        return self.text.fix

    @property
    def finds(self) -> bool:
        """True if a function finds its cases; False if another module reports them."""
        return self.found_by.startswith("rules.")

    def find(self, subject: Any, context: Any) -> Iterable[Hit]:
        """Its cases in a file; or in what was recorded."""
        if not self.finds:
            return ()
        module, _, function = self.found_by.partition(":")
        found = importlib.import_module(f"{__package__}.{module}")
        hits: Iterable[Hit] = getattr(found, function or "find")(subject, context)
        return hits


@functools.cache
def rules() -> dict[str, Rule]:
    """All rules, by id."""
    with (FOLDER / "index.csv").open(encoding="utf-8", newline="") as file:
        found = [_rule(**row) for row in csv.DictReader(file)]
    return {rule.id: rule for rule in found}


def _rule(severity: str, level: str, needs: str, **row: str) -> Rule:
    weight, evidence = Severity[severity.upper()], Evidence[level.upper()]
    return Rule(severity=weight, level=evidence, needs=tuple(needs.split()), **row)


class Redirect(NamedTuple):
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
