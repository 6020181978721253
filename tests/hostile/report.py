"""`Report`: what a table gives to the page."""

from __future__ import annotations

from typing import NamedTuple


class Report(NamedTuple):
    """The result of a table.

    Attributes:
        title: The heading of its section.
        section: The lines below it, in Markdown.
        wrong: What did not come as the table says, one for each such case.
    """

    title: str
    section: list[str]
    wrong: list[str]
