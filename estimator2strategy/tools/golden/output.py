"""The forms in which a verdict is told: text, JSON, and a page of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from estimator2strategy.tools.golden.recorder.folder import RecordError
from estimator2strategy.tools.golden.result import EQUAL, Status, Verdict

NAMES = ("text", "json", "junit", "html")
_STYLES = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.EXPLAINED: "yellow",
    Status.UNCHECKED: "dim",
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


def write(name: str, path: str | None, verdict: Verdict) -> None:
    """Writes a verdict to a file, or to the terminal."""
    if name == "text" and path is None and sys.stdout.isatty() and _in_colour(verdict):
        return
    if name == "html":
        from estimator2strategy.tools.golden.page import page

        text = page(verdict)
    else:
        text = {"text": text_of, "json": json_of, "junit": junit_of}[name](verdict)
    if path is None:
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def rows(verdict: Verdict) -> list[tuple[str, str, Status, str, str, str]]:
    """Tier, check, status, slack, tolerance, detail; the tier only in the first of its rows."""
    return [
        (tier.name if i == 0 else "", c.what, c.status, c.slack, c.tolerance, c.detail)
        for tier in verdict.tiers
        for i, c in enumerate(tier.checks)
    ]


def headline(verdict: Verdict) -> str:
    """One line: what was compared, and what came of it."""
    sides = [side.about.get("versions", {}).get("tensorflow", "?") for side in
             (verdict.golden, verdict.here)]  # fmt: skip
    where = f"TensorFlow {sides[0]} (golden) and {sides[1]} (here)"
    failed = verdict.first_failure
    if failed:
        return f"DIFFERENT: {where} differ in tier {failed[0].name!r}, {failed[1].what}"
    left = [t.name for t in verdict.tiers if t.status is Status.UNCHECKED]
    rest = f"; not checked: {', '.join(left)}" if left else ""
    return f"the same model: {where}{rest}"


def text_of(verdict: Verdict) -> str:
    """Plain text, in columns."""
    table = [(tier, what, status.value, slack) for tier, what, status, slack, _, _ in rows(verdict)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [headline(verdict), ""]
    for cells, row in zip(table, rows(verdict), strict=True):
        columns = "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{columns}  {_said(row[4], row[5])}".rstrip())
    lines += ["", *closing(verdict)]
    return "\n".join(lines).rstrip() + "\n"


def _said(tolerance: str, detail: str) -> str:
    within = tolerance if tolerance in ("", str(EQUAL)) else f"within {tolerance}"
    return "; ".join(part for part in (within, detail) if part)


def closing(verdict: Verdict) -> list[str]:
    """The lines after the table: the likely cause, notes, and what all this rests on."""
    lines = [f"likely cause: {verdict.cause}"] if verdict.cause else []
    for side in (verdict.golden, verdict.here):
        lines += [f"note: {note}" for note in side.about.get("notes", ())]
    widened = [f"{tier} {factor:g} x" for tier, factor in verdict.factors.items() if factor != 1]
    if widened:
        lines.append(f"tolerances: {', '.join(widened)} as wide as the package's own")
    return [*lines, "evidence: replayed on this CPU, and on emulated cores; nothing ran on a TPU"]


def _in_colour(verdict: Verdict) -> bool:
    """Prints a table; False where rich is missing."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ModuleNotFoundError:
        return False
    console = Console(highlight=False)
    failed = verdict.exit_code
    console.print(headline(verdict), style="bold red" if failed else "bold green")
    table = Table("tier", "check", "", "slack", "tolerance", "detail", box=None, pad_edge=False)
    for tier, what, status, slack, tolerance, detail in rows(verdict):
        table.add_row(tier, what, status.value, slack, tolerance, detail, style=_STYLES[status])
    console.print(table)
    for line in closing(verdict):
        console.print(line)
    return True


def json_of(verdict: Verdict) -> str:
    """A JSON object; its keys are stable."""
    sides = {"golden": verdict.golden, "here": verdict.here}
    found: dict[str, Any] = {
        "verdict": "different" if verdict.exit_code else "same",
        "exit_code": verdict.exit_code,
        "cause": verdict.cause or None,
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
            for tier in verdict.tiers
        ],
        "losses": {n: s.results["train/losses"].tolist() for n, s in sides.items()},
    }
    return json.dumps(found, indent=1) + "\n"


def junit_of(verdict: Verdict) -> str:
    """JUnit XML: a suite for each tier, a case for each check."""
    suites = ElementTree.Element("testsuites", name="e2s verify")
    for tier in verdict.tiers:
        found = [check.status for check in tier.checks]
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=tier.name,
            tests=str(len(found)),
            failures=str(found.count(Status.FAILED)),
            skipped=str(found.count(Status.UNCHECKED)),
        )
        for check in tier.checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"e2s verify.{tier.name}", name=check.what
            )
            if check.status is Status.FAILED:
                failure = ElementTree.SubElement(case, "failure", message=check.detail)
                failure.text = (
                    f"tolerance {check.tolerance}; {check.slack}\n{verdict.cause}".strip()
                )
            elif check.status is Status.UNCHECKED:
                ElementTree.SubElement(case, "skipped", message=check.detail)
            else:
                said = (check.status.value, check.slack, _said(check.tolerance, check.detail))
                ElementTree.SubElement(case, "system-out").text = "; ".join(filter(None, said))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
