"""Names that were misspelt: which one was meant.

    did_you_mean("traim", ["train", "eval"])          # 'Did you mean train?'

`e2s record --print` takes it along, so it is Python 3.6.
"""

import difflib
from collections.abc import Iterable
from typing import Any


def did_you_mean(name: Any, names: "Iterable[str]", otherwise: str = "") -> str:
    """Returns the question that a message about an unknown name ends in.

    Args:
        name: The unknown name.
        names: The names that there are.
        otherwise: The sentence for a name that looks like none of them.
    """
    near = difflib.get_close_matches(str(name), list(names), n=1)
    return f"Did you mean {near[0]}?" if near else otherwise
