"""Links that lead out of the guide, into the repository, are names on the site."""

import re

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:examples|benchmarks|README|ARCHITECTURE)[^)]*\)")
_LEGACY = re.compile(r"^```python legacy$", re.MULTILINE)


def on_page_markdown(markdown, **unused):
    # Python-Markdown knows one word after the fence.
    return _LEGACY.sub("```python", _OUTSIDE.sub(r"`\1`", markdown))
