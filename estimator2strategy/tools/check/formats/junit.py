"""JUnit XML: one case per file and rule that failed there, one per clean file."""

from __future__ import annotations

import collections
import re
from pathlib import Path
from xml.etree import ElementTree

from estimator2strategy.tools.check.check_report import (
    Finding,
    LevelReport,
    Outcome,
    Report,
    Severity,
    Verdict,
)
from estimator2strategy.tools.check.formats import harmless
from estimator2strategy.tools.check.rule import rules

# The characters that XML 1.0 cannot write.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, root: Path) -> str:
    """One suite. Notes (info) do not fail a case; they are its output."""
    report = harmless(report)
    cases: dict[tuple[str, str], list[Finding]] = collections.defaultdict(list)
    for finding in report.findings:
        cases[finding.path, finding.rule].append(finding)
    clean = sorted(set(report.files) - {path for path, _ in cases})
    verdicts = [(level, verdict) for level in report.levels for verdict in level.verdicts]
    failures = sum(any(f.severity > Severity.INFO for f in found) for found in cases.values())
    suite = ElementTree.Element(
        "testsuite",
        name="e2s check",
        tests=str(len(cases) + len(clean) + len(report.problems) + len(verdicts)),
        failures=str(failures),
        errors=str(len(report.problems)),
        skipped=str(sum(v.outcome is Outcome.UNKNOWN for _, v in verdicts)),
        time=f"{report.seconds:.3f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("evidence", report.evidence.words), ("target", report.target)):
        ElementTree.SubElement(properties, "property", name=name, value=value)
    for problem in report.problems:
        case = ElementTree.SubElement(suite, "testcase", classname="e2s check", name="complete")
        ElementTree.SubElement(case, "error", message=_text(problem), type="incomplete")
    for path in clean:
        ElementTree.SubElement(suite, "testcase", classname=_text(path), name="clean")
    for (path, rule), found in sorted(cases.items()):
        name = f"{rule} {rules()[rule].name}"
        case = ElementTree.SubElement(suite, "testcase", classname=_text(path), name=name)
        lines = "\n".join(
            f"{path}:{f.line}:{f.column}: {f.severity}: {f.message} [{f.evidence.option}]"
            for f in found
        )
        worst = max(f.severity for f in found)
        if worst > Severity.INFO:
            message = f"{found[0].message}" + (f" (and {len(found) - 1} more)" * (len(found) > 1))
            failure = ElementTree.SubElement(
                case, "failure", message=_text(message), type=str(worst)
            )
            failure.text = _text(f"{lines}\n{found[0].fix}")
        else:
            ElementTree.SubElement(case, "system-out").text = _text(lines)
    for level, verdict in verdicts:
        suite.append(_verdict(level, verdict))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    # In ASCII, which any terminal and any log can show.
    written: bytes = ElementTree.tostring(suites, encoding="us-ascii", xml_declaration=True)
    return f"{written.decode()}\n"


def _verdict(level: LevelReport, verdict: Verdict) -> ElementTree.Element:
    """A case of its own. What failed fails the case of its finding, or is an error above."""
    name = _text(f"{level.level.option}: {verdict.question}")
    case = ElementTree.Element("testcase", classname=_text(level.subject), name=name)
    if verdict.outcome is Outcome.UNKNOWN:
        ElementTree.SubElement(case, "skipped", message=_text(verdict.message or "cannot tell"))
    else:
        said = f"{verdict.outcome.value} {verdict.message}".strip()
        ElementTree.SubElement(case, "system-out").text = _text(said)
    return case


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
