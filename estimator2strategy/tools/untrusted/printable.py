r"""Names and source of strangers, as a terminal, a log or a CI system may be shown them.

A file may be called `a\n::error file=x::...`, which GitHub Actions takes for a command, or hold
the codes that move the cursor of a terminal, or the marks that turn a line around. Such characters
are written as Python writes them in a string.

Example:

    printable("a\n::error::b")       # 'a\\n::error::b'
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from typing import TextIO

# The joiners of some scripts and of emoji.
_JOINERS = "\u200c\u200d"
# All of these but the joiners; looked at one by one only where there is one. Most texts are ASCII,
# and need none of these patterns: to make them takes 5 ms.
_SUSPECT = r"[^ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u05ff\u3040-\ud7a3]"
_SUSPECT_IN_LINES = rf"(?!\r?\n|\t){_SUSPECT}"
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# Texts that runners of CI take for a command: GitHub's at the start of a line, and its old form,
# Azure's and TeamCity's anywhere.
_COMMANDS = re.compile(
    r"(?m)^(\s*):(?=:[\w-]+[^\n]*?::)|()#(?=#(?:vso|teamcity)?\[)", re.IGNORECASE
)


def printable(text: str) -> str:
    """A text on one line, without anything that acts on what shows it."""
    if not _is_plain(text):
        text = re.sub(_SUSPECT, _escaped, text)
    return _commands_escaped(text)


def printable_lines(text: str) -> str:
    """Several lines of text; ends of lines and tabs stay as they are."""
    if not _is_plain(text.replace("\n", "")):
        text = re.sub(_SUSPECT_IN_LINES, _escaped, text)
    return _commands_escaped(text)


def json_text(document: object, indent: int | None = None) -> str:
    """A document of JSON in ASCII, which reads back as it was."""
    text = json.dumps(document, indent=indent, ensure_ascii=True).replace("\x7f", "\\u007f")
    return _COMMANDS.sub(lambda match: match[0] if match[1] is not None else "\\u0023", text)


def write(text: str, stream: TextIO | None = None, errors: str = "backslashreplace") -> None:
    """Writes a text to a stream, whatever it can encode.

    Args:
        text: The text; see `printable`.
        stream: By default standard output.
        errors: The handler for characters that the stream's encoding lacks.
    """
    stream = sys.stdout if stream is None else stream
    stream.write(encodable(text, stream, errors))


def encodable(text: str, stream: TextIO | None = None, errors: str = "backslashreplace") -> str:
    """A text with everything escaped that a stream's encoding lacks; see `write`."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, errors).decode(encoding)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if unicodedata.category(character) not in _UNSEEN or character in _JOINERS:
        return character
    return ascii(character)[1:-1]


def _commands_escaped(text: str) -> str:
    def escaped(match: re.Match[str]) -> str:
        return f"{match[1]}\\x3a" if match[1] is not None else "\\x23"

    return _COMMANDS.sub(escaped, text)
