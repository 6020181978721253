"""The forms of a report: each is a module with `render(report, sources) -> str`."""

from __future__ import annotations

import importlib
from pathlib import Path

from estimator2strategy.tools.check.check_report import Report

# The target of a check, in words.
TARGETS = {
    "facade": "the program run by this package (e2s run, or import estimator2strategy.tf1 as tf)",
    "tf2": "the program on TensorFlow 2.16 or newer itself",
}

NAMES = ("text", "json", "sarif", "github", "junit", "html")


def render(name: str, report: Report, root: Path) -> str:
    """The report in one of the formats `NAMES`; `root` is where its paths start."""
    module = importlib.import_module(f"{__name__}.{name}")
    return module.render(report, root)
