"""All pages that are made, with their text as the code has it now."""

from __future__ import annotations

from pages import codemods, contrib, metrics, rules


def made() -> dict[str, str]:
    """Name of a page -> its text."""
    return {**codemods.page(), **contrib.page(), **metrics.page(), **rules.pages()}
