"""The comments of a file."""

from __future__ import annotations

import functools
import io
import re
import tokenize


@functools.lru_cache(maxsize=1)  # several codemods look at one text
def comments(text: str) -> dict[int, str]:
    """The comment on each line that has one."""
    if "#" not in text:
        return {}
    found = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string
    except (tokenize.TokenError, SyntaxError):
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.search(r"#.*$", line):
                found[number] = match[0]
    return found
