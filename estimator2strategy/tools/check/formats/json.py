"""The whole report as JSON, for programs. `version` changes when a field changes its meaning."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from estimator2strategy.tools.check.check_report import Finding, LevelReport, Report
from estimator2strategy.tools.check.rule import rules
from estimator2strategy.tools.untrusted.printable import json_text

VERSION = 1


def render(report: Report, root: Path) -> str:
    """A JSON object."""
    document = {
        "version": VERSION,
        "verdict": report.verdict,
        "target": report.target,
        "evidence": {"level": report.evidence.name, "means": report.evidence.words},
        "findings": [_finding(finding) for finding in report.findings],
        "levels": [_level(level) for level in report.levels],
        "levels_not_reached": [level.name for level in report.not_reached],
        "not_checked": [dataclasses.asdict(place) for place in report.not_checked],
        "beyond_this_evidence": list(report.beyond),
        "problems": list(report.problems),
        "files": list(report.files),
        "suppressed": report.suppressed,
        "baselined": report.baselined,
        "seconds": round(report.seconds, 3),
    }
    return json_text(document, indent=2) + "\n"


def _level(level: LevelReport) -> dict[str, object]:
    return {
        "level": level.level.name,
        "means": level.level.words,
        "subject": level.subject,
        "verdicts": [
            {**dataclasses.asdict(v), "outcome": v.outcome.name.lower()} for v in level.verdicts
        ],
        "facts": [{"kind": type(f).__name__, **dataclasses.asdict(f)} for f in level.facts],
        "not_checked": list(level.not_checked),
        "problems": list(level.problems),
        "seconds": round(level.seconds, 3),
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        **dataclasses.asdict(finding),
        "severity": str(finding.severity),
        "evidence": finding.evidence.name,
        "name": rules()[finding.rule].name,
        "page": rules()[finding.rule].page,
    }
