"""SARIF 2.1.0, for code scanning: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html"""

from __future__ import annotations

import collections
import hashlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from estimator2strategy import __version__
from estimator2strategy.tools.check.check_report import Finding, Report, Severity
from estimator2strategy.tools.check.formats import harmless
from estimator2strategy.tools.check.rule import GUIDE, Rule, rules
from estimator2strategy.tools.shell import guide
from estimator2strategy.tools.untrusted.printable import json_text, printable_lines

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
# GitHub takes no more in one run.
_MOST = 25_000


def render(report: Report, root: Path) -> str:
    """One run with all findings, worst first where there are more than code scanning takes."""
    findings = list(report.findings)
    report = harmless(report)
    notes = [f"not checked: {what}" for what in report.beyond]
    notes += [f"{level.subject}, {v}" for level in report.levels for v in level.said]
    notes += [f"not checked: {n.path}:{n.line}: {n.why}" for n in report.not_checked]
    if len(findings) > _MOST:
        notes.append(f"{len(findings) - _MOST} more findings were left out")
        findings = sorted(findings, key=lambda f: (-f.severity, f))[:_MOST]
    used = sorted({finding.rule for finding in findings})
    seen: collections.Counter[tuple[str, ...]] = collections.Counter()
    run = {
        "tool": {
            "driver": {
                "name": "e2s check",
                "version": __version__,
                "semanticVersion": __version__,
                **_at("informationUri", "check.md"),
                "rules": [_rule(rules()[rule]) for rule in used],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, used, seen) for finding in findings],
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": [
                    *({"level": "error", "message": {"text": p}} for p in report.problems),
                    *({"level": "note", "message": {"text": n}} for n in notes),
                ],
            }
        ],
        "properties": {"evidence": report.evidence.words, "target": report.target},
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json_text(document, indent=2) + "\n"


def _at(key: str, page: str) -> dict[str, str]:
    """Returns `key` with the address of a page of the guide; nothing if the guide has none."""
    return {key: f"{address}{page}"} if (address := guide.address()) else {}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.text.why},
        **_at("helpUri", rule.page.removeprefix(f"{GUIDE}/")),
        "help": {"text": f"{rule.fix}\nMore: {rule.page}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(
    finding: Finding, used: list[str], seen: collections.Counter[tuple[str, ...]]
) -> dict[str, Any]:
    seen[finding.key] += 1
    identity = "\0".join((*finding.key, str(seen[finding.key])))
    fix = f"\n{finding.fix}" if finding.fix else ""
    return {
        "ruleId": finding.rule,
        "ruleIndex": used.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": printable_lines(f"{finding.message}{fix}")},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(os.fsencode(finding.path))},
                    "region": {"startLine": finding.line, "startColumn": finding.column},
                }
            }
        ],
        "partialFingerprints": {
            "e2s/v1": hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
        },
        "properties": {"evidence": finding.evidence.name},
    }
