"""The table of wrong usages: a small call as a user would write it, and what must come of it.

Each row ends in an error that says which argument, the value given, the file and line of the call,
and what to pass; or in a warning of that form, where the original took it and some programs mean
it; or it is rightly taken, and the row says why.
"""

from __future__ import annotations

import contextlib
import enum
import io
import logging
import os
import re
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from estimator2strategy.engine import legacy_code
from estimator2strategy.engine.runtime import devices
from tests.hostile.report import Report
from tests.hostile.usages import (
    of_canned,
    of_commands,
    of_configs,
    of_estimator,
    of_failing_inputs,
    of_inputs,
    of_loops,
    of_ours,
    of_specs,
    of_tpu,
)
from tests.hostile.usages.usage import Usage

_AREAS = (
    of_estimator,
    of_configs,
    of_tpu,
    of_specs,
    of_loops,
    of_inputs,
    of_failing_inputs,
    of_ours,
    of_canned,
)
AREAS: dict[str, tuple[Usage, ...]] = {
    name: rows for module in (*_AREAS, of_commands) for name, rows in module.TABLES.items()
}
# What, the value given; the file and line of the call; what to pass.
FORM = re.compile(
    r"(?P<what>.+?\b([Gg]iven|received|[Gg]ot)\b.+)\n"
    r"  At (?P<file>[^\n]+?):(?P<line>\d+)(:.*)?\n"
    r"  \w.+",
    re.S,
)
# The user's code is a row, and what it calls of these modules.
_USERS = os.path.dirname(os.path.abspath(of_estimator.__file__)) + os.sep


class Outcome(enum.Enum):
    REFUSED = "refused"
    WARNED = "warned"
    RIGHTLY_TAKEN = "rightly taken"
    SILENT = "silently taken"
    RAW = "raw error"
    WRONGLY_REFUSED = "wrongly refused"


class Result(NamedTuple):
    """What came of a row; `said` is the message, if there was one."""

    outcome: Outcome
    said: str = ""

    @property
    def is_right(self) -> bool:
        return self.outcome in (Outcome.REFUSED, Outcome.WARNED, Outcome.RIGHTLY_TAKEN)


def result_of(usage: Usage, folder: str) -> Result:
    """Runs a row.

    Args:
        folder: For the row's model; it does not exist.
    """
    log, output = _Warnings(), io.StringIO()
    try:
        with (
            _put_back(),
            log,
            contextlib.redirect_stderr(output),
            contextlib.redirect_stdout(output),
        ):
            usage.call(folder)
    except SystemExit as end:
        # Python prints a code that is a text as the program ends.
        said = output.getvalue() + (end.code if isinstance(end.code, str) else "")
        told = end.code and usage.argument in said and "Traceback" not in said
        return Result(Outcome.REFUSED if told else Outcome.RAW, said)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        if usage.taken:
            return Result(Outcome.WRONGLY_REFUSED, said)
        return Result(Outcome.REFUSED if _has_form(str(error), usage) else Outcome.RAW, said)
    warned = [message for message in log.messages if _has_form(message, usage)]
    if warned:
        return Result(Outcome.WARNED, warned[0])
    return Result(Outcome.RIGHTLY_TAKEN if usage.taken else Outcome.SILENT)


def _has_form(message: str, usage: Usage) -> bool:
    """True if a message has the form, the name of the argument and a line of the call."""
    form = FORM.fullmatch(message)
    if form is None or usage.argument.lower() not in form["what"].lower():
        return False
    if form["file"] != usage.call.__code__.co_filename:
        return form["file"].startswith(_USERS)
    return int(form["line"]) in _lines(usage.call.__code__) | _lines_of_functions(usage)


def _lines(code: types.CodeType) -> set[int]:
    """The lines of a function, and of those inside of it."""
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return {line for *_, line in code.co_lines() if line}.union(*map(_lines, inner))


def _lines_of_functions(usage: Usage) -> set[int]:
    """The lines of the functions of its module that a row calls."""
    names = _names(usage.call.__code__)
    called = [usage.call.__globals__.get(name) for name in names]
    return set().union(*(_lines(f.__code__) for f in called if isinstance(f, types.FunctionType)))


def _names(code: types.CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def run() -> Report:
    """Runs all rows, each with a folder of its own."""
    found: dict[str, list[tuple[Usage, Result]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for area, rows in AREAS.items():
            found[area] = [
                (row, result_of(row, os.path.join(folder, f"{area} {i}".replace("`", ""))))
                for i, row in enumerate(rows)
            ]
    every = [(area, row, result) for area, rows in found.items() for row, result in rows]
    wrong = [f"{a}: {u.name}: {r.outcome.value}: {r.said}" for a, u, r in every if not r.is_right]
    return Report("Wrong usages", _section(found), wrong)


def _section(found: Mapping[str, list[tuple[Usage, Result]]]) -> list[str]:
    counts = {area: Counter(r.outcome for _, r in rows) for area, rows in found.items()}
    total: Counter[Outcome] = sum(counts.values(), Counter())
    head = ["what is used", "rows", *(outcome.value for outcome in Outcome)]
    lines = [
        "Each row is a small call as a user would write it, with one argument that is wrong.",
        "",
        "- *refused*: an error names the argument, its value, the file and line of the call, and",
        "  what to pass; for a command, the argument;",
        "- *warned*: a warning says the same, because the original went on and programs may mean",
        "  it;",
        "- *rightly taken*: the original takes it, and it makes sense there (listed below).",
        "",
        "The last three columns are failures of this package, and must be 0.",
        "",
        _row(head),
        _row(["---"] * len(head)),
        *(_row([area, len(found[area]), *_numbers(c)]) for area, c in counts.items()),
        _row(["**all**", total.total(), *_numbers(total)]),
        "",
        "Rightly taken, because the original takes it and it makes sense there:",
        "",
    ]
    taken = [(area, row) for area, rows in found.items() for row, _ in rows if row.taken]
    return lines + [f"- {area}: {row.name}: {row.taken}." for area, row in taken]


def _numbers(counts: Counter[Outcome]) -> list[int]:
    return [counts[outcome] for outcome in Outcome]


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


@contextlib.contextmanager
def _put_back() -> Iterator[None]:
    """No row emulates cores for the next one, or makes a legacy program of this process."""
    kept = devices._emulated_cores, devices._emulated_hosts
    devices._emulated_cores, devices._emulated_hosts = 0, 1
    programs, finders, environment = legacy_code._added, sys.meta_path[:], dict(os.environ)
    arguments, path = sys.argv[:], sys.path[:]
    try:
        yield
    finally:
        devices._emulated_cores, devices._emulated_hosts = kept
        legacy_code._added = programs
        sys.meta_path[:], sys.argv[:], sys.path[:] = finders, arguments, path
        os.environ.clear()
        os.environ.update(environment)


class _Warnings(logging.Handler):
    """The warnings of TensorFlow's log, for the time of a `with`."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def __enter__(self) -> _Warnings:
        self._logger = logging.getLogger("tensorflow")
        self._before = self._logger.level, self._logger.handlers[:]
        self._logger.setLevel(logging.WARNING)
        self._logger.handlers[:] = [self]
        return self

    def __exit__(self, *error: object) -> None:
        level, handlers = self._before
        self._logger.setLevel(level)
        self._logger.handlers[:] = handlers
