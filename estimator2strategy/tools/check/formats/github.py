"""Workflow commands that GitHub Actions shows as annotations.

It shows 10 errors and 10 warnings of a step and drops the rest without a word, so the worst come
first and the last one says how many more there are. Notes ask nobody to do anything: they are
counted there, and no line of a pull request is annotated with them.
"""

from __future__ import annotations

from pathlib import Path

from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    Report,
    Severity,
)
from estimator2strategy.tools.check.formats import harmless

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}
_MOST = 10


def render(report: Report, root: Path) -> str:
    """One command to a line; the verdict is the last."""
    report = harmless(report)
    lines = [f"::error title=e2s check::{_data(problem)}" for problem in report.problems[:_MOST]]
    room = dict.fromkeys(_COMMANDS, _MOST)
    room[Severity.ERROR] -= len(lines)
    left_out = 0
    annotated = [finding for finding in report.findings if finding.severity in _COMMANDS]
    for finding in sorted(annotated, key=lambda f: (-f.severity, f)):
        if room[finding.severity] > 0:
            room[finding.severity] -= 1
            lines.append(_annotation(finding))
        else:
            left_out += 1
    more = f"; {left_out} more are not annotated, see the log" if left_out else ""
    lines.append(f"::notice title=e2s check::{_data(report.verdict + more)}")
    return "\n".join(lines) + "\n"


def _annotation(finding: Finding) -> str:
    place = (
        f"file={_property(finding.path)},line={finding.line},col={finding.column},"
        f"title={_property(_title(finding))}"
    )
    message = f"{finding.message}\n{finding.fix}".strip()
    return f"::{_COMMANDS[finding.severity]} {place}::{_data(message)}"


def _title(finding: Finding) -> str:
    """The rule; with its level of evidence, where that is not the source alone."""
    beyond = finding.evidence != Evidence.STATIC
    return f"{finding.rule} ({finding.evidence.option})" if beyond else finding.rule


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
