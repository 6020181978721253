"""The report as text, for a terminal or a log. Notes (info) are counted, and listed on request."""

from __future__ import annotations

import collections
from pathlib import Path

from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    LevelReport,
    Report,
    Severity,
)
from estimator2strategy.tools.check.formats import TARGETS, harmless
from estimator2strategy.tools.check.request import LEVELS
from estimator2strategy.tools.check.rule import rules

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_OUTCOMES = {"passed": "green", "failed": "bold red", "cannot tell": "yellow"}
# How many rows of a table, and how many places that could not be judged are listed.
_LISTED = 10

Segment = tuple[str, str]


def render(report: Report, root: Path, *, notes: bool = False) -> str:
    """Plain text."""
    return "".join(text for text, _ in segments(report, root, notes=notes))


def segments(report: Report, root: Path, *, notes: bool) -> list[Segment]:
    """The text in pieces, each with a style of rich ("" for none)."""
    report = harmless(report)
    out: list[Segment] = []
    hidden: collections.Counter[str] = collections.Counter()
    path, said = None, set[str]()
    for finding in report.findings:
        if finding.severity == Severity.INFO and not notes:
            hidden[finding.rule] += 1
            continue
        if finding.path != path:
            path, said = finding.path, set()
            out += [("\n" if out else "", ""), (f"{path}\n", "bold underline")]
        # The same advice once for each file.
        out += _finding(finding, finding.fix if finding.fix not in said else "")
        said.add(finding.fix)
    if hidden:
        out.append(("\n" if out else "", ""))
        noted = f"{hidden.total()} note{'s' * (hidden.total() > 1)}"
        out.append((f"{noted}, listed with --notes:\n", "cyan"))
        for rule, count in sorted(hidden.items()):
            out.append((f"  {rule}  {count:4} x {rules()[rule].title}\n", ""))
    out.append(("\n" if out else "", ""))
    out += [(f"Could not be done: {problem}\n", "bold red") for problem in report.problems]
    if report.problems and not (report.files or report.levels):
        return out
    worst = max((finding.severity for finding in report.findings), default=None)
    out.append((f"{report.verdict}\n", _STYLES[worst] if worst else "bold green"))
    if report.suppressed or report.baselined:
        out.append(
            (f"{report.suppressed} silenced by comments, {report.baselined} in the baseline.\n", "")
        )
    out.append((f"For: {TARGETS[report.target]}. {report.seconds:.1f} s.\n", ""))
    out += [part for level in report.levels for part in _level(level)]
    for evidence in report.not_reached:
        how = f" (--levels {evidence.option})" if evidence in LEVELS else ""
        out.append((f"Not done: {evidence.words}{how}\n", "dim"))
    out.append(("Not checked by reading the source:\n" if report.levels else "Not checked:\n", ""))
    out += [(f"  {what}\n", "dim") for what in report.beyond]
    for place in report.not_checked[:_LISTED]:
        where = f"{place.path}:{place.line}" if place.line else place.path
        out.append((f"  {where}: {place.why}\n", "dim"))
    if len(report.not_checked) > _LISTED:
        more = len(report.not_checked) - _LISTED
        out.append((f"  and {more} more places (--format json lists all)\n", "dim"))
    return out


def _evidence(finding: Finding) -> str:
    """The level that a finding rests on; it goes without saying where source was read."""
    return "" if finding.evidence == Evidence.STATIC else f" [{finding.evidence.option}]"


def _level(level: LevelReport) -> list[Segment]:
    """The text of a level's report: verdicts, facts, and the parts that it did not check."""
    out = [("\n", ""), (f"{level.subject} ({level.level.words})\n", "bold underline")]
    for verdict in level.verdicts:
        said = f": {verdict.message}" if verdict.message else ""
        out.append((f"  {verdict.question}: ", ""))
        out.append((f"{verdict.outcome.value}{said}\n", _OUTCOMES[verdict.outcome.value]))
    if level.facts:
        from estimator2strategy.tools.check.levels.facts import lines_of

        out += [(f"  {line}\n", "") for fact in level.facts for line in lines_of(fact)]
    out += [(f"  not checked: {what}\n", "dim") for what in level.not_checked]
    return out


def _finding(finding: Finding, advice: str) -> list[Segment]:
    return [
        (f"  {finding.line}:{finding.column}", "dim"),
        (f"  {finding.severity}", _STYLES[finding.severity]),
        (f" {finding.rule} ", "bold"),
        (f"{finding.message}{_evidence(finding)}\n", ""),
        (f"      {finding.text}\n" if finding.text else "", "dim"),
        (f"      -> {advice}\n" if advice else "", "green"),
    ]
