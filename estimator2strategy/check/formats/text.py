"""For people, in a terminal or a log; notes (info) are counted, and listed on request."""

from __future__ import annotations

import collections
from pathlib import Path

from estimator2strategy.check.formats import TARGETS
from estimator2strategy.check.report import Finding, Report, Severity
from estimator2strategy.check.rule import rules

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
# How many places that could not be judged are listed.
_LISTED = 10

Segment = tuple[str, str]


def render(report: Report, root: Path, *, notes: bool = False) -> str:
    """Plain text."""
    return "".join(text for text, _ in segments(report, root, notes=notes))


def segments(report: Report, root: Path, *, notes: bool) -> list[Segment]:
    """The text in pieces, each with a style of rich ("" for none)."""
    out: list[Segment] = []
    hidden: collections.Counter[str] = collections.Counter()
    path = None
    for finding in report.findings:
        if finding.severity == Severity.INFO and not notes:
            hidden[finding.rule] += 1
            continue
        if finding.path != path:
            path = finding.path
            out += [("\n" if out else "", ""), (f"{path}\n", "bold underline")]
        out += _finding(finding)
    if hidden:
        out.append(("\n" if out else "", ""))
        out.append((f"{hidden.total()} notes, listed with --notes:\n", "cyan"))
        for rule, count in sorted(hidden.items()):
            out.append((f"  {rule}  {count:4} x {rules()[rule].title}\n", ""))
    out.append(("\n" if out else "", ""))
    worst = max((finding.severity for finding in report.findings), default=None)
    out.append((f"{report.verdict}\n", _STYLES[worst] if worst else "bold green"))
    out += [(f"Could not be done: {problem}\n", "bold red") for problem in report.problems]
    if report.suppressed or report.baselined:
        out.append(
            (f"{report.suppressed} silenced by comments, {report.baselined} in the baseline.\n", "")
        )
    out.append((f"For: {TARGETS[report.target]}. {report.seconds:.1f} s.\n", ""))
    out.append(("Not checked:\n", ""))
    out += [(f"  {what}\n", "dim") for what in report.beyond]
    for place in report.not_checked[:_LISTED]:
        where = f"{place.path}:{place.line}" if place.line else place.path
        out.append((f"  {where}: {place.why}\n", "dim"))
    if len(report.not_checked) > _LISTED:
        more = len(report.not_checked) - _LISTED
        out.append((f"  and {more} more places (--format json lists all)\n", "dim"))
    return out


def _finding(finding: Finding) -> list[Segment]:
    return [
        (f"  {finding.line}:{finding.column}", "dim"),
        (f"  {finding.severity}", _STYLES[finding.severity]),
        (f" {finding.rule} ", "bold"),
        (f"{finding.message}\n", ""),
        (f"      {finding.text}\n" if finding.text else "", "dim"),
        (f"      -> {finding.fix}\n" if finding.fix else "", "green"),
    ]
