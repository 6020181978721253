"""One page that needs nothing else: findings by file with the lines around them, and levels."""

from __future__ import annotations

import html
import itertools
from pathlib import Path

from estimator2strategy.tools.check.all_rules import rules
from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    Report,
    Severity,
)
from estimator2strategy.tools.check.formats import TARGETS, html_levels

# Lines of source before and after the one that is meant.
_AROUND = 2
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>e2s check</title>
<style>
:root {{
  color-scheme: light dark;
  --line: #8884; --error: #c62828; --warning: #b26a00; --info: #1565c0; --passed: #2e7d32;
}}
@media (prefers-color-scheme: dark) {{
  :root {{ --error: #ff8a80; --warning: #ffb74d; --info: #82b1ff; --passed: #81c784; }}
}}
* {{ box-sizing: border-box; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; }}
h1 {{ font-size: 1.4rem; }}
h2 {{ font-size: 1.1rem; overflow-wrap: anywhere; margin-top: 2rem; }}
code, pre {{ font: .85rem/1.45 ui-monospace, monospace; }}
article {{ border: 1px solid var(--line); border-left-width: .4rem; border-radius: .3rem;
  margin: .8rem 0; padding: .5rem .8rem; overflow-wrap: anywhere; }}
article.error {{ border-left-color: var(--error); }}
article.warning {{ border-left-color: var(--warning); }}
article.info {{ border-left-color: var(--info); }}
.error b {{ color: var(--error); }}
.warning b {{ color: var(--warning); }}
.info b {{ color: var(--info); }}
pre {{ overflow-x: auto; margin: .5rem 0; padding: .4rem; background: #8881; }}
pre mark {{ background: #ffd54f55; color: inherit; display: inline-block; min-width: 100%; }}
p {{ margin: .3rem 0; }}
table {{ border-collapse: collapse; }}
td {{ text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top; }}
td.number {{ text-align: right; }}
{style}</style>
</head>
<body>
<h1>e2s check: {verdict}</h1>
{problems}<p>For {target}.</p>
<details><summary>What was not checked</summary>
<ul>
{not_checked}
</ul>
</details>
{summary}
{index}
{files}
{levels}
</body>
</html>
"""


def render(report: Report, root: Path) -> str:
    """The page; source is read again from the files, and left out where that is not possible."""
    groups = itertools.groupby(report.findings, key=lambda finding: finding.path)
    files = [_file(path, list(found), root) for path, found in groups]
    blind = [f"{n.path}:{n.line}: {n.why}" for n in report.not_checked]
    return _PAGE.format(
        verdict=html.escape(report.verdict),
        problems="".join(f"<pre><b>{html.escape(p)}</b></pre>\n" for p in report.problems),
        target=html.escape(TARGETS[report.target]),
        not_checked="\n".join(f"<li>{html.escape(w)}</li>" for w in (*report.beyond, *blind)),
        style=html_levels.STYLE,
        summary=html_levels.summary(report),
        levels="\n".join(html_levels.section(level) for level in report.levels),
        index=_index(report),
        files="\n".join(files),
    )


def _index(report: Report) -> str:
    counts: dict[tuple[int, str], int] = {}
    for finding in report.findings:
        key = (-finding.severity, finding.rule)
        counts[key] = counts.get(key, 0) + 1
    if not counts:
        return ""
    rows = "\n".join(
        f'<tr class="{Severity(-worst)}"><td class="number">{count}</td>'
        f"<td><b>{Severity(-worst)}</b></td>"
        f"<td>{rule}</td><td>{html.escape(rules()[rule].title)}</td></tr>"
        for (worst, rule), count in sorted(counts.items())
    )
    return f"<table>\n{rows}\n</table>"


def _file(path: str, findings: list[Finding], root: Path) -> str:
    try:
        lines = (root / path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    loud = [_finding(f, lines) for f in findings if f.severity > Severity.INFO]
    notes = [_finding(f, lines) for f in findings if f.severity == Severity.INFO]
    if notes:
        body = "\n".join(notes)
        loud.append(f"<details><summary>{len(notes)} notes</summary>\n{body}\n</details>")
    body = "\n".join(loud)
    return f"<section>\n<h2>{html.escape(path)}</h2>\n{body}\n</section>"


def _finding(finding: Finding, lines: list[str]) -> str:
    where = f" in <code>{html.escape(finding.symbol)}</code>" if finding.symbol else ""
    return (
        f'<article class="{finding.severity}">\n'
        f"<p><b>{finding.severity}</b> {finding.rule} line {finding.line}{where}: "
        f"{html.escape(finding.message)}{_evidence(finding)}</p>\n"
        f"{_excerpt(finding.line, lines)}"
        f"<p>{html.escape(finding.fix)}</p>\n"
        f"<details><summary>Why</summary><p>{html.escape(rules()[finding.rule].why)}</p></details>\n"
        "</article>"
    )


def _evidence(finding: Finding) -> str:
    return "" if finding.evidence == Evidence.STATIC else f" [{finding.evidence.option}]"


def _excerpt(line: int, lines: list[str]) -> str:
    first, last = max(line - _AROUND, 1), min(line + _AROUND, len(lines))
    if not first <= line <= last:
        return ""
    shown = []
    for number in range(first, last + 1):
        text = html.escape(f"{number:5}  {lines[number - 1]}")
        shown.append(f"<mark>{text}</mark>" if number == line else text)
    return "<pre>" + "\n".join(shown) + "</pre>\n"
