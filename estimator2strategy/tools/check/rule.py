"""Rules: a row of `rules/index.csv` each, a page of `rules/texts/`, and a function that finds.

    E2S106,star-import,tensorflow,warning,static,facade,rules.tensorflow.star_import,...

`rules/texts/E2S106.md` says why and what to do, and has a program with findings, these findings,
and a program without. The function is `find` of the module that the row names, which is imported
when the rule is first used:

    def find(source, context):
        for star in source.stars:
            yield Hit(star.node, "`import *` hides which names are meant")

Of a rule about a recorded graph it gets a `levels.recorded_graph.Recorded`, and its hits have an op
as node. Where the row names a module that is no rule's, that module reports the findings itself.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.rule_text import RuleText, read

GUIDE = "migration_guide"
FOLDER = Path(__file__).parent / "rules"


@dataclasses.dataclass(frozen=True)
class Hit:
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
        return read(FOLDER / "texts" / f"{self.id}.md")

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
