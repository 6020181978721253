"""The forms in which a comparison is told: text, JSON, and a page of its own."""

from __future__ import annotations

import html
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from estimator2strategy.tools.golden.recorder.options import RecordError
from estimator2strategy.tools.golden.result import EQUAL, CheckStatus, Comparison
from estimator2strategy.tools.golden.training_tier import LATER_LOSS, Quantity, Training
from estimator2strategy.tools.untrusted import printable
from estimator2strategy.tools.untrusted.printable import printable_lines


def rows(comparison: Comparison) -> list[tuple[str, str, CheckStatus, str, str, str]]:
    """Tier, check, status, slack, tolerance, detail; the tier only in the first of its rows."""
    return [
        (tier.name if i == 0 else "", c.what, c.status, c.slack, c.tolerance, c.detail)
        for tier in comparison.tiers
        for i, c in enumerate(tier.checks)
    ]


def headline(comparison: Comparison) -> str:
    """One line: what was compared, and what came of it."""
    sides = [side.about.get("versions", {}).get("tensorflow", "?") for side in
             (comparison.golden, comparison.here)]  # fmt: skip
    where = f"TensorFlow {sides[0]} (golden) and {sides[1]} (here)"
    failed = comparison.first_failure
    if failed:
        return f"DIFFERENT: {where} differ in tier '{failed[0].name}', {failed[1].what}"
    left = [t.name for t in comparison.tiers if t.status is CheckStatus.UNCHECKED]
    rest = f"; not checked: {', '.join(left)}" if left else ""
    raced = any(side.about["train"].get("race") for side in (comparison.golden, comparison.here))
    rest += "; the original races, see the note" if raced else ""
    return f"the same model: {where}{rest}"


def closing(comparison: Comparison) -> list[str]:
    """The lines after the table: the likely cause, notes, and what all this rests on."""
    lines = [f"likely cause: {comparison.cause}"] if comparison.cause else []
    for side in (comparison.golden, comparison.here):
        lines += [f"note: {note}" for note in side.about.get("notes", ())]
    widened = [f"{tier} {factor:g} x" for tier, factor in comparison.factors.items() if factor != 1]
    if widened:
        lines.append(f"tolerances: {', '.join(widened)} as wide as the package's own")
    return [*lines, "evidence: replayed on this CPU, and on emulated cores; nothing ran on a TPU"]


_PAGE = Path(__file__).with_name("page.html")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 360, 220, 52, 26


class Scale(NamedTuple):
    """Maps numbers to pixels; logarithmic where `log`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = self._of(self.low), self._of(self.high), self._of(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def _of(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.log else value


def page(comparison: Comparison) -> str:
    """The page, as HTML."""
    lines = [
        f'<tr><td>{_text(tier)}</td><td>{_text(what)}</td><td class="{status.name.lower()}">'
        f"{status.value}</td><td>{_text(slack)}</td><td>{_text(tolerance)}</td>"
        f"<td>{_text(detail)}</td></tr>"
        for tier, what, status, slack, tolerance, detail in rows(comparison)
    ]
    return _PAGE.read_text(encoding="utf-8").format(
        headline=_text(headline(comparison)),
        closing="<br>".join(map(_text, closing(comparison))),
        plots="\n".join(_plots(Training(comparison.golden, comparison.here))),
        rows="\n".join(lines),
    )


_text = html.escape


def _plots(training: Training) -> list[str]:
    golden, here = training.losses()
    steps = list(range(1, len(golden) + 1))
    errors = LATER_LOSS.shares(golden, here)
    return [
        _figure(
            "Loss at each step: the golden (line) and here (dots)", _curves(steps, golden, here)
        ),
        _figure(
            "Difference of the loss as a share of its tolerance (dashed)", _errors(steps, errors)
        ),
        _figure(
            "Norms of all updates of all variables: the golden's (across) and here (up); what is "
            "the same lies on the line",
            _scatter(*_norms(training)),
        ),
    ]


def _figure(caption: str, inside: str) -> str:
    label = html.escape(caption, quote=True)
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{inside}'
        f"</svg><figcaption>{_text(caption)}</figcaption></figure>"
    )


def _scales(x: Sequence[float], y: Sequence[float], log: str = "") -> tuple[Scale, Scale]:
    across = Scale(min(x), max(x), _LEFT, _WIDTH - 8, "x" in log)
    up = Scale(min(y), max(y), _HEIGHT - _BOTTOM, 8, "y" in log)
    return across, up


def _axes(x: Scale, y: Scale) -> str:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - 8
    return (
        f'<path class="axis" d="M{_LEFT} 8V{bottom}H{right}"/>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">{x.low:.3g}</text>'
        f'<text x="{right}" y="{_HEIGHT - 8}" text-anchor="end">{x.high:.3g}</text>'
        f'<text x="{_LEFT - 4}" y="{bottom}" text-anchor="end">{y.low:.3g}</text>'
        f'<text x="{_LEFT - 4}" y="16" text-anchor="end">{y.high:.3g}</text>'
    )


def _dots(x: Scale, y: Scale, points: Sequence[tuple[float, float]], radius: float = 3) -> str:
    return "".join(
        f'<circle class="here" cx="{x(a):.1f}" cy="{y(b):.1f}" r="{radius}"/>' for a, b in points
    )


def _curves(steps: list[int], golden: np.ndarray, here: np.ndarray) -> str:
    values = [v for v in (*golden, *here) if math.isfinite(v)] or [0.0]
    x, y = _scales(steps, values)
    finite = [(s, v) for s, v in zip(steps, golden, strict=True) if math.isfinite(v)]
    line = "L".join(f"{x(s):.1f} {y(v):.1f}" for s, v in finite)
    dots = [(s, v) for s, v in zip(steps, here, strict=True) if math.isfinite(v)]
    return f'{_axes(x, y)}<path class="golden" d="M{line}"/>{_dots(x, y, dots)}'


def _errors(steps: list[int], shares: np.ndarray) -> str:
    least = 1e-4
    finite = np.clip(np.nan_to_num(shares, posinf=1e6), least, 1e6)
    x, y = _scales(steps, [least, 10.0, *finite], "y")
    limit = f'<path class="limit" d="M{_LEFT} {y(1):.1f}H{_WIDTH - 8}"/>'
    return f"{_axes(x, y)}{limit}{_dots(x, y, list(zip(steps, finite, strict=True)))}"


def _norms(training: Training) -> list[np.ndarray]:
    quiet = training.noisy(training.steps - 1)
    kept = [name not in quiet for name in training.variables]
    sides: list[list[np.ndarray]] = [[], []]
    for step in range(training.steps):
        for side, sized in zip(sides, training.sized(Quantity.UPDATES, step), strict=True):
            side.append(sized[kept, 0])
    golden, here = (np.concatenate(side) for side in sides)
    shown = (golden > 0) & (here > 0)
    # At most some hundred dots: a page is to be looked at.
    every = max(1, int(shown.sum()) // 600)
    return [golden[shown][::every], here[shown][::every]]


def _scatter(golden: np.ndarray, here: np.ndarray) -> str:
    if not len(golden):
        return f'<text x="{_LEFT}" y="{_HEIGHT // 2}">no variable moved</text>'
    both = [*golden, *here]
    x, y = _scales(both, both, "xy")
    low, high = min(both), max(both)
    line = f"M{x(low):.1f} {y(low):.1f}L{x(high):.1f} {y(high):.1f}"
    dots = _dots(x, y, list(zip(golden, here, strict=True)), 2)
    return f'{_axes(x, y)}<path class="golden" d="{line}"/>{dots}'


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
