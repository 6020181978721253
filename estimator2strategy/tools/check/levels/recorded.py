"""The level `recorded`: what rules find in the graphs that model_fn and input_fn build."""

from __future__ import annotations

from collections.abc import Iterator

from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    LevelReport,
    Outcome,
    Severity,
    Verdict,
)
from estimator2strategy.tools.check.levels import inventory
from estimator2strategy.tools.check.levels.check_error import CheckError
from estimator2strategy.tools.check.levels.findings import of_hit
from estimator2strategy.tools.check.levels.recorded_graph import Recorded
from estimator2strategy.tools.check.levels.subject import Subject
from estimator2strategy.tools.check.request import Mode
from estimator2strategy.tools.check.rule import Hit, rules, rules_of

_LEVEL = Evidence.RECORDED
_REFUSED = "E2S601"


def check(subject: Subject) -> LevelReport:
    """Records each mode on one device and, for a TPU's model, as one of several cores."""
    verdicts: list[Verdict] = []
    problems: list[str] = []
    findings: list[Finding] = []
    facts: list[inventory.Fact] = []
    for mode in subject.modes:
        try:
            made = list(recordings(subject, mode))
            found = [f for recorded in made for f in findings_in(recorded, subject)]
        except CheckError as problem:
            verdicts.append(Verdict(f"{mode}: records", Outcome.FAILED, "see the problems"))
            problems.append(str(problem))
            continue
        findings += found
        worst = max((f.severity for f in found), default=Severity.INFO)
        errors = sum(f.severity == Severity.ERROR for f in found)
        outcome = Outcome.FAILED if worst == Severity.ERROR else Outcome.PASSED
        said = f"{errors} errors" if errors else ""
        verdicts.append(Verdict(f"{mode}: records", outcome, said))
        whole = [recorded for recorded in made if recorded.spec is not None]
        facts += [fact for recorded in whole[-1:] for fact in inventory.facts(recorded)]
    return LevelReport(
        _LEVEL,
        subject.name,
        verdicts=tuple(verdicts),
        findings=tuple(dict.fromkeys(sorted(findings))),
        facts=tuple(facts),
        problems=tuple(problems),
    )


def recordings(subject: Subject, mode: Mode) -> Iterator[Recorded]:
    """A mode on one device and, for a TPU's model, as one of several cores.

    Raises:
        CheckError: The program raised an error.
    """
    yield subject.recorded(mode, refused=True)
    if subject.model.for_tpu:
        yield subject.recorded(mode, on_cores=True, refused=True)


def findings_in(recorded: Recorded, subject: Subject) -> Iterator[Finding]:
    """The findings of the rules in a recording."""
    # Where the input was refused there is no model to look at.
    whole = recorded.spec is not None
    for rule in rules_of(_LEVEL) if whole else [rules()[_REFUSED]]:
        hits: Iterator[Hit] = iter(rule.find(recorded, subject))
        yield from (of_hit(rule.id, hit, subject) for hit in hits)
