"""Findings at the lines of the program that made an op."""

from __future__ import annotations

import inspect
import linecache
from pathlib import Path
from typing import Any

from estimator2strategy.engine.user_code import user_frame
from estimator2strategy.tools.check.check_report import Evidence, Finding, Severity
from estimator2strategy.tools.check.levels.check_error import relative
from estimator2strategy.tools.check.rule import Hit, rules


def finding(
    rule_id: str,
    place: Any,
    message: str,
    root: Path,
    *,
    model_fn: Any,
    fix: str | None = None,
    severity: Severity | None = None,
    evidence: Evidence | None = None,
) -> Finding:
    """A finding of a level.

    Args:
        rule_id: "E2S601".
        place: An op, made at the line that is meant; a function, defined there; a pair (path,
            line); or None: model_fn.
        message: The problem at this place.
        root: The folder that paths are relative to.
        model_fn: The place of a finding that has no line of its own.
        fix, severity, evidence: In place of the rule's own.
    """
    rule = rules()[rule_id]
    path, line, symbol = _place(place) or _place(model_fn) or ("?", 1, "")
    return Finding(
        path=relative(path, root),
        line=line,
        column=1,
        rule=rule_id,
        severity=rule.severity if severity is None else severity,
        message=message,
        fix=rule.fix if fix is None else fix,
        symbol=symbol,
        text=" ".join(linecache.getline(path, line).split()),
        evidence=rule.level if evidence is None else evidence,
    )


def of_hit(rule_id: str, hit: Hit, subject: Any) -> Finding:
    """The finding that a rule's hit in a recording is."""
    return finding(
        rule_id,
        hit.node,
        hit.message,
        subject.root,
        model_fn=subject.model.model_fn,
        fix=hit.fix,
        severity=hit.severity,
    )


def _place(place: Any) -> tuple[str, int, str] | None:
    """(absolute path, line, name of the function) of what a finding is at."""
    if place is None:
        return None
    if isinstance(place, tuple):
        return (*place, "")
    if hasattr(place, "traceback"):
        frame = user_frame(place.traceback)
        return None if frame is None else (frame.filename, frame.lineno, _name(frame.name))
    inner = inspect.unwrap(place)
    while hasattr(inner, "func"):
        inner = inner.func
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno, code.co_name)


def _name(name: str) -> str:
    return "" if name.startswith("<") else name
