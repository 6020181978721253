"""All rules: the files of `rules/` and `graph_rules/`, and the rows of `described_rules.py`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable, Iterator

from estimator2strategy.tools.check import graph_rules
from estimator2strategy.tools.check import rules as source_rules
from estimator2strategy.tools.check.check_report import Evidence
from estimator2strategy.tools.check.described_rules import DESCRIBED
from estimator2strategy.tools.check.rule import REGISTRY, Rule, register


@functools.cache
def rules() -> dict[str, Rule]:
    """All rules, by id."""
    for package in (source_rules, graph_rules):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    for described in DESCRIBED:
        register(described)
    return dict(sorted(REGISTRY.items()))


def rules_of(level: Evidence) -> list[Rule]:
    """The rules whose findings rest on this evidence."""
    return [rule for rule in rules().values() if rule.level == level]


def matching(selectors: Iterable[str]) -> Iterator[str]:
    """The ids of the rules that an id, the beginning of one, or a name selects."""
    for selector in selectors:
        for known in rules().values():
            if known.id.startswith(selector) or known.name == selector:
                yield known.id
