"""The forms of a report: each is a module with `render(report, sources) -> str`.

`harmless` gives a report in which no name, source or message acts on what shows it.
"""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

from estimator2strategy.tools.check.check_report import Report
from estimator2strategy.tools.untrusted.printable import printable, printable_lines

# The target of a check, in words.
TARGETS = {
    "facade": "the program run by this package (e2s run, or import estimator2strategy.tf1 as tf)",
    "tf2": "the program on TensorFlow 2.16 or newer itself",
}

NAMES = ("text", "json", "sarif", "github", "junit", "html")


def render(name: str, report: Report, root: Path) -> str:
    """The report in one of the formats `NAMES`; `root` is where its paths start."""
    module = importlib.import_module(f"{__name__}.{name}")
    text: str = module.render(report, root)
    return text


# Fields with words of the checked tree; other texts may have several lines.
_ON_ONE_LINE = {"path", "symbol", "text", "files"}
# A line of source is cut after so many characters.
_LONGEST = 400


def harmless(report: Report) -> Report:
    """The report with everything escaped that a terminal, a log or a CI system would act on."""
    made: Report = _harmless(report)
    return made


def _harmless(value: Any, *, name: str = "") -> Any:
    if isinstance(value, str):
        if (
            len(value) < _LONGEST
            and value.isascii()
            and value.isprintable()
            and ":" not in value
            and "#" not in value
        ):
            return value
        if name == "text" and len(value) > _LONGEST:
            value = f"{value[:_LONGEST]}..."
        return printable(value) if name in _ON_ONE_LINE else printable_lines(value)
    if isinstance(value, tuple):
        return tuple(_harmless(part, name=name) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return dataclasses.replace(
            value, **{name: _harmless(part, name=name) for name, part in fields.items()}
        )
    return value
