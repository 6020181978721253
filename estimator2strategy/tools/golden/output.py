"""The forms in which a comparison is told: text, JSON, and a page of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from estimator2strategy.tools.golden.page import page
from estimator2strategy.tools.golden.recorder.folder import RecordError
from estimator2strategy.tools.golden.result import EQUAL, CheckStatus, Comparison
from estimator2strategy.tools.golden.summary import closing, headline, rows
from estimator2strategy.tools.untrusted import printable
from estimator2strategy.tools.untrusted.printable import printable_lines

NAMES = ("text", "json", "junit", "html")
_STYLES = {
    CheckStatus.PASSED: "green",
    CheckStatus.FAILED: "bold red",
    CheckStatus.EXPLAINED: "yellow",
    CheckStatus.UNCHECKED: "dim",
}


def parsed(given: str) -> tuple[str, str | None]:
    """`NAME` or `NAME=FILE`, apart.

    Raises:
        RecordError: There is no form of that name.
    """
    name, _, path = given.partition("=")
    if name not in NAMES:
        raise RecordError(f"--format {name}: there are {', '.join(NAMES)}")
    return name, path or None


def write(name: str, path: str | None, comparison: Comparison) -> None:
    """Writes a comparison to a file, or to the terminal."""
    if name == "text" and path is None and sys.stdout.isatty() and _in_colour(comparison):
        return
    if name == "html":
        text = page(comparison)
    else:
        text = {"text": text_of, "json": json_of, "junit": junit_of}[name](comparison)
    if path is None:
        printable.write(text, errors="xmlcharrefreplace" if name == "html" else "backslashreplace")
    else:
        Path(path).write_text(text, encoding="utf-8")


def text_of(comparison: Comparison) -> str:
    """Plain text, in columns."""
    table = [
        (tier, what, status.value, slack) for tier, what, status, slack, _, _ in rows(comparison)
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [headline(comparison), ""]
    for cells, row in zip(table, rows(comparison), strict=True):
        columns = "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{columns}  {_said(row[4], row[5])}".rstrip())
    lines += ["", *closing(comparison)]
    return printable_lines("\n".join(lines).rstrip()) + "\n"


def _said(tolerance: str, detail: str) -> str:
    within = tolerance if tolerance in ("", str(EQUAL)) else f"within {tolerance}"
    return "; ".join(part for part in (within, detail) if part)


def _in_colour(comparison: Comparison) -> bool:
    """Prints a table; False where rich is missing."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ModuleNotFoundError:
        return False
    console = Console(highlight=False)
    failed = comparison.exit_code
    console.print(headline(comparison), style="bold red" if failed else "bold green")
    table = Table("tier", "check", "", "slack", "tolerance", "detail", box=None, pad_edge=False)
    for tier, what, status, slack, tolerance, detail in rows(comparison):
        table.add_row(tier, what, status.value, slack, tolerance, detail, style=_STYLES[status])
    console.print(table)
    for line in closing(comparison):
        console.print(line)
    return True


def json_of(comparison: Comparison) -> str:
    """A JSON object; its keys are stable."""
    sides = {"golden": comparison.golden, "here": comparison.here}
    report: dict[str, Any] = {
        "verdict": "different" if comparison.exit_code else "same",
        "exit_code": comparison.exit_code,
        "cause": comparison.cause or None,
        "versions": {name: side.about.get("versions", {}) for name, side in sides.items()},
        "tiers": [
            {
                "tier": tier.name,
                "status": tier.status.name.lower(),
                "checks": [
                    {
                        "what": c.what,
                        "status": c.status.name.lower(),
                        "tolerance": c.tolerance or None,
                        "share_of_tolerance": c.share if c.share != float("inf") else None,
                        "detail": c.detail or None,
                    }
                    for c in tier.checks
                ],
            }
            for tier in comparison.tiers
        ],
        "losses": {n: s.results["train/losses"].tolist() for n, s in sides.items()},
    }
    return json.dumps(report, indent=1) + "\n"


def junit_of(comparison: Comparison) -> str:
    """JUnit XML: a suite for each tier, a case for each check."""
    suites = ElementTree.Element("testsuites", name="e2s verify")
    for tier in comparison.tiers:
        statuses = [check.status for check in tier.checks]
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=tier.name,
            tests=str(len(statuses)),
            failures=str(statuses.count(CheckStatus.FAILED)),
            skipped=str(statuses.count(CheckStatus.UNCHECKED)),
        )
        for check in tier.checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"e2s verify.{tier.name}", name=check.what
            )
            if check.status is CheckStatus.FAILED:
                failure = ElementTree.SubElement(case, "failure", message=check.detail)
                failure.text = (
                    f"tolerance {check.tolerance}; {check.slack}\n{comparison.cause}".strip()
                )
            elif check.status is CheckStatus.UNCHECKED:
                ElementTree.SubElement(case, "skipped", message=check.detail)
            else:
                said = (check.status.value, check.slack, _said(check.tolerance, check.detail))
                ElementTree.SubElement(case, "system-out").text = "; ".join(filter(None, said))
    ElementTree.indent(suites)
    # In ASCII, which any terminal and any log can show.
    written: bytes = ElementTree.tostring(suites, encoding="us-ascii", xml_declaration=True)
    return f"{written.decode()}\n"
