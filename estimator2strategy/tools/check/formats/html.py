"""One page that needs nothing else: findings by file with the lines around them, and levels."""

from __future__ import annotations

import collections
import datetime
import html
from collections.abc import Sequence
from pathlib import Path

from estimator2strategy import __version__
from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    Report,
    Severity,
)
from estimator2strategy.tools.check.formats import TARGETS, harmless, html_levels
from estimator2strategy.tools.check.rule import rules
from estimator2strategy.tools.reader.python_files import read_source
from estimator2strategy.tools.untrusted.printable import printable_lines

# Lines of source before and after the one that is meant.
_AROUND = 2
_LONGEST = 400  # characters of a line
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
table.index td:last-child {{ overflow-wrap: anywhere; }}
td input {{ margin: 0 .3rem 0 0; }}
:target {{ outline: 2px solid var(--info); outline-offset: 2px; }}
{style}</style>
</head>
<body>
<h1>e2s check: {verdict}</h1>
{problems}<p>For {target}. Made by version {version} on {date}.</p>
{index}
<details><summary>What was not checked</summary>
<ul>
{not_checked}
</ul>
</details>
{summary}
{files}
{levels}
</body>
</html>
"""


def render(report: Report, root: Path) -> str:
    """The page; source is read again from the files, and left out where that is not possible.

    Files with errors come first. The table of rules shows and hides what a rule found, and leads
    to the first of it; no script is needed.
    """
    report = harmless(report)
    by_path: dict[str, list[Finding]] = collections.defaultdict(list)
    for finding in report.findings:
        by_path[finding.path].append(finding)
    worst_first = sorted(by_path.values(), key=lambda found: -max(f.severity for f in found))
    loud_first = [f for found in worst_first for f in _by_loudness(found)]
    ids = {id(finding): f"f{number}" for number, finding in enumerate(loud_first)}
    following = _next_of_rule(loud_first, ids)
    files = [_file(found, root, ids, following) for found in worst_first]
    blind = [f"{n.path}:{n.line}: {n.why}" for n in report.not_checked]
    return _PAGE.format(
        verdict=html.escape(report.verdict),
        problems="".join(f"<pre><b>{html.escape(p)}</b></pre>\n" for p in report.problems),
        target=html_levels.prose(TARGETS[report.target]),
        version=__version__,
        date=f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        not_checked="\n".join(f"<li>{html_levels.prose(w)}</li>" for w in (*report.beyond, *blind)),
        style=html_levels.STYLE + _filters(report.findings),
        summary=html_levels.summary(report),
        levels="\n".join(html_levels.section(level) for level in report.levels),
        index=_index(loud_first, ids),
        files="\n".join(files),
    )


def _by_loudness(findings: Sequence[Finding]) -> list[Finding]:
    """Errors and warnings as they stand in the file, then notes."""
    return sorted(findings, key=lambda finding: finding.severity == Severity.INFO)


def _next_of_rule(findings: Sequence[Finding], ids: dict[int, str]) -> dict[int, str]:
    """`id(finding)` -> where the page has the next finding of its rule."""
    following: dict[int, str] = {}
    last: dict[str, Finding] = {}
    for finding in findings:
        if before := last.get(finding.rule):
            following[id(before)] = ids[id(finding)]
        last[finding.rule] = finding
    return following


def _filters(findings: Sequence[Finding]) -> str:
    """Styles that hide the findings of a rule whose box in the index is not ticked."""
    rules_found = sorted({finding.rule for finding in findings})
    return "".join(
        f"body:has(#show-{r}:not(:checked)) article.{r} {{ display: none; }}\n" for r in rules_found
    )


def _index(findings: Sequence[Finding], ids: dict[int, str]) -> str:
    groups: dict[tuple[int, str], list[Finding]] = collections.defaultdict(list)
    for finding in findings:
        groups[-finding.severity, finding.rule].append(finding)
    rows = "\n".join(
        f'<tr class="{Severity(-worst)}">'
        f'<td><input type="checkbox" id="show-{rule}" title="show what {rule} found" checked></td>'
        f'<td class="number">{len(found)}</td><td><b>{Severity(-worst)}</b></td>'
        f'<td><a href="#{ids[id(found[0])]}">{rule}</a></td>'
        f"<td>{html_levels.prose(rules()[rule].title)}</td></tr>"
        for (worst, rule), found in sorted(groups.items())
    )
    return f'<table class="index">\n{rows}\n</table>' if rows else ""


def _file(
    findings: list[Finding], root: Path, ids: dict[int, str], following: dict[int, str]
) -> str:
    path = findings[0].path
    try:
        lines = read_source(root / path).splitlines()
    except (OSError, ValueError):
        lines = []

    def article(finding: Finding) -> str:
        return _finding(finding, lines, ids[id(finding)], following.get(id(finding)))

    loud = [article(f) for f in findings if f.severity > Severity.INFO]
    notes = [article(f) for f in findings if f.severity == Severity.INFO]
    if notes:
        body = "\n".join(notes)
        title = f"{len(notes)} note{'s' * (len(notes) > 1)}"
        loud.append(f"<details><summary>{title}</summary>\n{body}\n</details>")
    body = "\n".join(loud)
    return f"<section>\n<h2>{html.escape(path)}</h2>\n{body}\n</section>"


def _finding(finding: Finding, lines: list[str], place: str, following: str | None) -> str:
    onward = f' <a href="#{following}">next {finding.rule}</a>' if following else ""
    where = f" in <code>{html.escape(finding.symbol)}</code>" if finding.symbol else ""
    return (
        f'<article class="{finding.severity} {finding.rule}" id="{place}">\n'
        f"<p><b>{finding.severity}</b> {finding.rule} line {finding.line}{where}: "
        f"{html_levels.prose(finding.message)}{_evidence(finding)}{onward}</p>\n"
        f"{_excerpt(finding.line, lines)}"
        f"<p>{html_levels.prose(finding.fix)}</p>\n"
        f"<details><summary>Why</summary><p>{html_levels.prose(rules()[finding.rule].text.why)}</p></details>\n"
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
        text = html.escape(f"{number:5}  {printable_lines(lines[number - 1][:_LONGEST])}")
        shown.append(f"<mark>{text}</mark>" if number == line else text)
    return "<pre>" + "\n".join(shown) + "</pre>\n"
