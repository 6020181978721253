"""Rules. Each is a file in `rules/` that registers itself:

Example:

    @rule(
        "E2S999", "no-such-thing", Severity.ERROR,
        title="Nothing is called so",
        why="...", fix="...", bad="import tensorflow as tf\\n...", good="...",
    )
    def find(source):
        for call in source.calls:
            if call.name == "tf.no_such_thing":
                yield Hit(call.node, "tf.no_such_thing does not exist")

A rule about a recorded graph is a file in `graph_rules/`, with `level=Evidence.RECORDED`. Its
function gets a `levels.recorded_graph.Recorded`, and its hits have an op as node. A rule whose
findings another module makes has no function: it is a row of `described_rules.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from estimator2strategy.tools.check.check_report import Evidence, Severity

GUIDE = "migration_guide"


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
    """A thing to find.

    Attributes:
        id: Never changes its meaning, and is never used again: "E2S201".
        name: The same in words, for people: "fixed-batch-size".
        severity: Of a finding, unless the finding says otherwise.
        title: The kind of case that it finds, in one line.
        why: The failure that follows, and the evidence for it.
        fix: The remedy.
        guide: The page of the migration guide that says more; "" if there is none.
        bad, good: A program with a finding, and the same without; None for a rule that no source
            can show.
        target: The target for which the samples are checked.
        level: The evidence that its findings rest on.
        find: Finds it in a file; or in what was recorded.
        found_by: The module in `tools/check` that makes the findings, where `find` makes none.
    """

    id: str
    name: str
    severity: Severity
    title: str
    why: str
    fix: str
    bad: str | None
    good: str | None
    guide: str = ""
    target: str = "facade"
    level: Evidence = Evidence.STATIC
    find: Callable[[Any, Any], Iterable[Hit]] = lambda subject, context: ()
    found_by: str = ""

    @property
    def page(self) -> str:
        """The page and heading that document it, relative to the repository."""
        return f"{GUIDE}/rules/{self.id[:4].lower()}.md#{self.id.lower()}-{self.name}"


# Those of the files that were imported so far; `all_rules.rules` imports the others.
REGISTRY: dict[str, Rule] = {}


def rule(id: str, name: str, severity: Severity, **about: Any) -> Callable:  # noqa: A002
    """Registers the function below it as what finds a rule's cases in a file."""

    def registered(find: Callable[[Any, Any], Iterable[Hit]]) -> Callable:
        register(Rule(id, name, severity, find=find, **about))
        return find

    return registered


def register(new: Rule) -> None:
    """Adds a rule to `REGISTRY`.

    Raises:
        ValueError: Its id is taken.
    """
    if new.id in REGISTRY:
        raise ValueError(f"{new.id} is {REGISTRY[new.id].name} already")
    REGISTRY[new.id] = new
