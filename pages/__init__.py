"""The pages of the migration guide that are made from the code, and what they share.

    python -m pages            # writes all of them

A page has its own prose. What is made stands in it between two comments:

    <!-- made: table -->

    | ... |

    <!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[1] / "migration_guide"


def filled(text: str, parts: Mapping[str, str]) -> str:
    """A page with its made parts anew.

    Args:
        parts: Name of the part -> its text; the page has each of them once.
    """
    marks = re.compile(r"(<!-- made: ([\w ]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
    names = [match[2] for match in marks.finditer(text)]
    assert sorted(names) == sorted(parts), (names, sorted(parts))
    return marks.sub(lambda match: f"{match[1]}\n{parts[match[2]].strip()}\n{match[3]}", text)


def page(name: str, parts: Mapping[str, str]) -> dict[str, str]:
    """The name of a page of the guide, and its text with its made parts anew."""
    return {name: filled((GUIDE / name).read_text(encoding="utf-8"), parts)}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
