"""Comments that silence a finding: `# e2s: ignore[E2S123] the reason`.

On the line of the finding, or alone on the line above it.
"""

from __future__ import annotations

import dataclasses
import re

from estimator2strategy.tools.reader.python_files import comments
from estimator2strategy.tools.reader.source import Source

_COMMENT = re.compile(r"#\s*e2s:\s*ignore\b(?:\[(?P<rules>[^\]]*)\])?\s*(?P<reason>.*)$")
UNREASONED = "E2S004"
UNUSED = "E2S005"


@dataclasses.dataclass(frozen=True)
class Suppression:
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
