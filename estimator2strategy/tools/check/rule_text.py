"""The text about a rule, from its page in `rules/texts/`."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

_BLOCK = re.compile(r"^```(?:python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class RuleText:
    """The sections of a rule's page.

    Attributes:
        why: The failure that follows, and the evidence for it.
        fix: The remedy.
        flagged, clean: A program with a finding, and the same without; None for a rule that no
            source can show.
        findings: The lines of the findings in `flagged`: `line:column id severity: message`.
    """

    why: str
    fix: str
    flagged: str | None = None
    clean: str | None = None
    findings: tuple[str, ...] = ()


def read(path: Path) -> RuleText:
    """The text of a page."""
    found = sections(path.read_text(encoding="utf-8"))
    flagged, clean = (blocks(found.get(name, "")) for name in ("Flagged", "Clean"))
    return RuleText(
        " ".join(found["Why"].split()),
        " ".join(found["Fix"].split()),
        next(iter(flagged), None),
        next(iter(clean), None),
        tuple("".join(flagged[1:]).splitlines()),
    )


def sections(page: str) -> dict[str, str]:
    """Heading of the second level -> what is below it."""
    _, *parts = re.split(r"^## ", page, flags=re.MULTILINE)
    return {head: text for head, _, text in (part.partition("\n") for part in parts)}


def blocks(section: str) -> list[str]:
    """The fenced blocks of a section."""
    return _BLOCK.findall(section)
