"""`Usage`: a small call as a user would write it, with one argument that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Usage(NamedTuple):
    """A row of the tables.

    Attributes:
        name: What the user got wrong.
        argument: The name that the message must say.
        call: The call. It gets a folder for the model that does not exist yet.
        taken: Why the call is right to go on, in the words of the page; "": it must be refused.
    """

    name: str
    argument: str
    call: Callable[[str], Any]
    taken: str = ""
