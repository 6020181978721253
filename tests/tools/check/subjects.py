"""Models to check in this very process, from the source of a program."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from estimator2strategy.legacy import importing
from estimator2strategy.tools.check.levels.load import of_functions
from estimator2strategy.tools.check.request import Asked


def module(text: str, path: Path) -> ModuleType:
    """The module of a legacy program; nothing else in this process becomes legacy code."""
    path.write_text(text, encoding="utf-8")
    made = ModuleType(path.stem)
    made.__file__ = str(path)
    importing.execute(compile(text, str(path), "exec", dont_inherit=True), made)
    return made


def subject(text: str, folder: Path, **asked: Any) -> Any:
    """The Subject of a program with model_fn, input_fn and perhaps PARAMS and MODES.

    Args:
        asked: Further attributes of an `Asked`.
    """
    program = module(text, folder / "program.py")
    asked = {"modes": getattr(program, "MODES", ("train",)), "root": folder, **asked}
    inputs = dict.fromkeys(("train", "eval", "predict"), program.input_fn)
    params = getattr(program, "PARAMS", {})
    return of_functions(Asked("program.py:model_fn", **asked), program.model_fn, inputs, params)
