"""The levels of evidence on the HTML page: tables, bars and curves."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from estimator2strategy.tools.check.check_report import Evidence, LevelReport, Outcome, Report
from estimator2strategy.tools.check.levels.facts import (
    Bar,
    Bars,
    Cell,
    Curve,
    Curves,
    Fact,
    Number,
    Table,
    quantity,
)
from estimator2strategy.tools.check.request import LEVELS

# Rows of a table that are shown without a click.
_OPEN_ROWS = 8
# The size of a plot in its own units, and the room beside it for numbers.
_WIDTH, _HEIGHT, _LEFT, _BELOW = 640, 240, 84, 34
_STROKES = ("", "6 4", "2 3", "10 3 2 3")

_CODE = re.compile(r"`([^`\n]+)`")

STYLE = """\
.passed { color: var(--passed); }
.failed { color: var(--error); }
.unknown { color: var(--warning); }
.dim { font-weight: normal; opacity: .7; }
.scroll { overflow-x: auto; }
.summary { margin: 1rem 0; }
.summary table { min-width: 52rem; }
.summary b { white-space: nowrap; }
h1 { overflow-wrap: anywhere; }
.level { border-top: 1px solid var(--line); margin-top: 2rem; }
.level table { margin: .4rem 0 1rem; }
th { text-align: left; padding: .15rem .8rem .15rem 0; font-weight: 600; }
caption, figcaption, summary { text-align: left; font-weight: 600; }
figure { margin: 1rem 0; }
.bar { display: grid; grid-template-columns: minmax(3rem, 15%) 1fr; gap: .2rem .8rem;
  align-items: center; margin: .3rem 0; }
.track { background: #8883; height: 1.1rem; position: relative; border-radius: .2rem; }
.fill { background: var(--info); height: 100%; border-radius: .2rem; }
.over .fill { background: var(--error); }
.limit { position: absolute; top: -.2rem; bottom: -.2rem; border-left: 2px solid currentColor; }
.note { grid-column: 2; font-size: .85rem; }
figure { overflow-x: auto; }
svg { width: 100%; min-width: 32rem; max-width: 44rem; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg .axis { stroke: currentColor; opacity: .5; }
.series0 { stroke: var(--info); } .series1 { stroke: var(--error); }
.series2 { stroke: var(--warning); } .series3 { stroke: var(--passed); }
"""


def summary(report: Report) -> str:
    """The table of all levels, gone through or not, of each model."""
    if not report.levels:
        return ""
    subjects = list(dict.fromkeys(level.subject for level in report.levels))
    above = [level for level in Evidence if level > Evidence.STATIC]
    rows = [_summary_row(report, subject, level) for subject in subjects for level in above]
    body = "\n".join(rows)
    return (
        '<div class="scroll summary"><table>\n'
        "<caption>What was checked, and what it shows</caption>\n"
        "<tr><th>model</th><th>level</th><th>outcome</th><th>shows</th></tr>\n"
        f"{body}\n</table></div>"
    )


def _summary_row(report: Report, subject: str, evidence: Evidence) -> str:
    found = [v for v in report.levels if v.subject == subject and v.level == evidence]
    word, kind = "not checked", "dim"
    if found:
        word, kind = _outcome(found[0])
    proves = LEVELS[evidence].proves if evidence in LEVELS else ""
    cells = (subject, evidence.words.partition(":")[0], word, proves)
    shown = [html.escape(cell) for cell in cells]
    shown[2] = f'<b class="{kind}">{shown[2]}</b>'
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in shown) + "</tr>"


def _outcome(level: LevelReport) -> tuple[str, str]:
    if level.problems:
        return "could not be done", "failed"
    outcomes = {verdict.outcome for verdict in level.verdicts}
    for outcome in (Outcome.FAILED, Outcome.UNKNOWN):
        if outcome in outcomes:
            return outcome.value, outcome.name.lower()
    return Outcome.PASSED.value, "passed"


def section(level: LevelReport) -> str:
    """The section of one level's report."""
    verdicts = "".join(
        f"<tr><td>{prose(v.question)}</td>"
        f'<td><b class="{v.outcome.name.lower()}">{v.outcome.value}</b></td>'
        f"<td>{prose(v.message)}</td></tr>\n"
        for v in level.verdicts
    )
    problems = "".join(f"<pre>{html.escape(problem)}</pre>\n" for problem in level.problems)
    beyond = "".join(f"<li>{prose(what)}</li>\n" for what in level.not_checked)
    return (
        f'<section class="level">\n<h2>{html.escape(level.subject)}</h2>\n'
        f"<p>{html.escape(level.level.words[0].upper() + level.level.words[1:])}. "
        f"{level.seconds:.0f} s.</p>\n{problems}"
        f'<div class="scroll"><table>\n{verdicts}</table></div>\n'
        f"{_facts(level.facts)}\n"
        f"<details><summary>What this level cannot show</summary>\n<ul>\n{beyond}</ul></details>\n"
        "</section>"
    )


def _facts(facts: Sequence[Fact]) -> str:
    numbers = [fact for fact in facts if isinstance(fact, Number)]
    rows = "".join(
        f"<tr><td>{html.escape(n.name)}</td>"
        f'<td class="number">{html.escape(quantity(n.value, n.unit))}</td></tr>\n'
        for n in numbers
    )
    parts = [f'<div class="scroll"><table>\n{rows}</table></div>'] if numbers else []
    parts += [_shown(fact) for fact in facts if not isinstance(fact, Number)]
    return "\n".join(parts)


def _shown(fact: Table | Bars | Curves) -> str:
    if isinstance(fact, Table):
        return _table(fact)
    return _bars(fact) if isinstance(fact, Bars) else _curves(fact)


def _table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = []
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        shown = (_cell(column, cell) for column, cell in cells)
        rows.append(f"<tr>{''.join(shown)}</tr>")
    title = html.escape(table.title)
    body = "\n".join(rows)
    made = f'<div class="scroll"><table>\n<tr>{head}</tr>\n{body}\n</table></div>'
    is_open = " open" if len(rows) <= _OPEN_ROWS else ""
    return f"<details{is_open}><summary>{title} ({len(rows)})</summary>\n{made}\n</details>"


def _cell(column: str, cell: Cell) -> str:
    number = "" if isinstance(cell, str) else ' class="number"'
    return f"<td{number}>{html.escape(quantity(cell, 'bytes' if column == 'bytes' else ''))}</td>"


def _bars(bars: Bars) -> str:
    shown = "\n".join(_bar(bar, bars.unit) for bar in bars.bars)
    return f"<figure>\n<figcaption>{html.escape(bars.title)}</figcaption>\n{shown}\n</figure>"


def _bar(bar: Bar, unit: str) -> str:
    whole = max(bar.used, bar.limit or 0.0) or 1.0
    over = bar.limit is not None and bar.used > bar.limit
    limit = ""
    said = quantity(float(bar.used), unit)
    if bar.limit is not None:
        limit = f'<div class="limit" style="left: {100 * bar.limit / whole:.1f}%"></div>'
        said += f" of {quantity(float(bar.limit), unit)}"
    if over and bar.limit:
        said += f", {quantity(float(bar.used - bar.limit), unit)} too much"
    note = f"{said}. {bar.note}" if bar.note else said
    return (
        f'<div class="bar{" over" if over else ""}"><div>{html.escape(bar.label)}</div>'
        f'<div class="track"><div class="fill" style="width: {100 * bar.used / whole:.1f}%"></div>'
        f'{limit}</div><div class="note">{html.escape(note)}</div></div>'
    )


def _curves(plot: Curves) -> str:
    points = [(x, y) for curve in plot.curves for x, y in zip(curve.x, curve.y, strict=True)]
    points = [(x, y) for x, y in points if x - x == 0 and y - y == 0]  # finite ones
    title = html.escape(plot.title)
    if not points:
        return f"<p>{title}: nothing to plot.</p>"
    xs, ys = zip(*points, strict=True)
    box = (min(xs), max(xs), min(ys), max(ys))
    lines = "\n".join(_line(i, curve, box) for i, curve in enumerate(plot.curves))
    legend = "\n".join(_legend(i, curve) for i, curve in enumerate(plot.curves))
    low, high = _HEIGHT - _BELOW, 12
    axes = (
        f'<line class="axis" x1="{_LEFT}" y1="{high}" x2="{_LEFT}" y2="{low}"/>'
        f'<line class="axis" x1="{_LEFT}" y1="{low}" x2="{_WIDTH}" y2="{low}"/>'
        f'<text x="{_LEFT - 6}" y="{high + 4}" text-anchor="end">{box[3]:.4g}</text>'
        f'<text x="{_LEFT - 6}" y="{low}" text-anchor="end">{box[2]:.4g}</text>'
        f'<text x="{_LEFT}" y="{low + 16}">{box[0]:g}</text>'
        f'<text x="{_WIDTH - 4}" y="{low + 16}" text-anchor="end">{box[1]:g} '
        f"{html.escape(plot.x_label)}</text>"
    )
    return (
        f"<figure>\n<figcaption>{title}</figcaption>\n"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">\n'
        f"{axes}\n{lines}\n{legend}\n</svg>\n</figure>"
    )


def _line(number: int, curve: Curve, box: tuple[float, float, float, float]) -> str:
    x0, x1, y0, y1 = box
    width, height = _WIDTH - _LEFT - 8, _HEIGHT - _BELOW - 12
    points = " ".join(
        f"{_LEFT + width * (x - x0) / ((x1 - x0) or 1):.1f},"
        f"{12 + height * (1 - (y - y0) / ((y1 - y0) or 1)):.1f}"
        for x, y in zip(curve.x, curve.y, strict=True)
        if y - y == 0
    )
    return f'<polyline {_stroke(number)} points="{points}"/>'


def _legend(number: int, curve: Curve) -> str:
    x, y = _WIDTH - 190, 20 + 16 * number
    return (
        f'<line {_stroke(number)} x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}"/>'
        f'<text x="{x + 30}" y="{y}">{html.escape(curve.label)}</text>'
    )


def _stroke(number: int) -> str:
    """Lines differ in colour and in dashes, for those who do not see the one."""
    dashes = _STROKES[number % len(_STROKES)]
    return (
        f'class="series{number % 4}" fill="none" stroke-width="2" stroke-dasharray="{dashes}"'
        if dashes
        else f'class="series{number % 4}" fill="none" stroke-width="2"'
    )


def prose(text: str) -> str:
    """Returns a sentence as HTML: code between backquotes is set as code."""
    return _CODE.sub(r"<code>\1</code>", html.escape(text))
