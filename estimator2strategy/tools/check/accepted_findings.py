"""The baseline: findings that a team has accepted for now. It only ever shrinks.

A finding is known by its rule, its file, the function it is in and the text of its line, so that
lines added above it do not matter. Equal findings are counted.

Comments silence findings, too: `# e2s: ignore[E2S123] the reason`, on the line of the finding, or
alone on the line above it.
"""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from estimator2strategy.tools.check.check_report import Finding
from estimator2strategy.tools.check.settings import SettingsError
from estimator2strategy.tools.reader.python_files import comments
from estimator2strategy.tools.reader.source import Source
from estimator2strategy.tools.untrusted.regular_files import read_bytes

_MOST_BYTES = 200_000_000

Key = tuple[str, str, str, str]
Baseline = collections.Counter[Key]
_VERSION = 1
_FIELDS = ("rule", "path", "symbol", "text")


def read(path: Path) -> Baseline:
    """The entries of a baseline file, none if there is no file.

    Raises:
        SettingsError: It is no baseline.
    """
    try:
        document = json.loads(read_bytes(path, _MOST_BYTES))
        if document["version"] != _VERSION:
            raise SettingsError(f"{path}: version {document['version']}; this reads {_VERSION}")
        entries = Baseline()
        for entry in document["findings"]:
            entries[tuple(str(entry[field]) for field in _FIELDS)] += int(entry.get("count", 1))  # type: ignore[index]
    except FileNotFoundError:
        return Baseline()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SettingsError(f"{path} is no baseline of e2s check: {error!r}") from error
    return entries


def write(path: Path, entries: Baseline) -> None:
    """Writes a baseline file, sorted, one finding to a line."""
    lines = []
    for key in sorted(entries):
        entry: dict[str, object] = dict(zip(_FIELDS, key, strict=True))
        if entries[key] > 1:
            entry["count"] = entries[key]
        line = json.dumps(entry, ensure_ascii=False)
        if not line.isprintable():  # marks that turn a line around, names that are not UTF-8
            line = json.dumps(entry)
        lines.append(f"  {line}")
    body = ",\n".join(lines)
    text = f'{{\n"version": {_VERSION},\n"findings": [\n{body}\n]\n}}\n'
    path.write_text(text, encoding="utf-8")


def of(findings: Iterable[Finding]) -> Baseline:
    """The entries that would hide these findings."""
    return Baseline(finding.key for finding in findings)


def split(findings: Iterable[Finding], entries: Baseline) -> tuple[list[Finding], Baseline]:
    """The findings that are not in the baseline, and the entries that no finding has used."""
    left = Baseline(entries)
    new = []
    for finding in findings:
        if left[finding.key] > 0:
            left[finding.key] -= 1
        else:
            new.append(finding)
    return new, +left


_COMMENT = re.compile(r"#\s*e2s:\s*ignore\b(?:\[(?P<rules>[^\]]*)\])?\s*(?P<reason>.*)$")
UNREASONED = "E2S004"
UNUSED = "E2S005"


class Suppression(NamedTuple):
    """A comment in line `line` that silences `rules` in line `applies_to`."""

    line: int
    applies_to: int
    rules: tuple[str, ...]
    reason: str


def suppressions(source: Source) -> list[Suppression]:
    """The suppressions in a file."""
    if "e2s:" not in source.text:
        return []
    found = []
    for line, comment in comments(source.text).items():
        match = _COMMENT.search(comment)
        if match is None:
            continue
        alone = source.line(line).lstrip().startswith("#")
        rules = tuple(r.strip() for r in (match["rules"] or "").split(",") if r.strip())
        found.append(Suppression(line, line + alone, rules, match["reason"].strip(" :-")))
    return found
