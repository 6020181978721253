"""Processes that a legacy program starts get its `tensorflow` too.

`multiprocessing` (spawn, forkserver) and `subprocess` start new interpreters. These find
`legacy/_child/sitecustomize.py` on PYTHONPATH, which calls `adopt`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from types import CodeType
from typing import Any

from estimator2strategy.engine import patches
from estimator2strategy.engine.legacy_code import Scope
from estimator2strategy.legacy import importing

_VARIABLE = "E2S_LEGACY_SCOPE"
_FOLDER = str(Path(__file__).parent / "_child")


def inherit(scope: Scope) -> None:
    """Processes that this one starts from now on have the legacy modules in `scope`."""
    patches.noted("children")
    fields = dataclasses.asdict(scope)
    fields["legacy"], fields["forks"] = sorted(scope.legacy), sorted(scope.forks)
    os.environ[_VARIABLE] = json.dumps(fields)
    package = str(Path(__file__).parents[2])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    added = [path for path in (_FOLDER, package) if path not in paths]
    os.environ["PYTHONPATH"] = os.pathsep.join([*added, *filter(None, paths)])


def adopt() -> None:
    """Makes this interpreter, which is starting, one of a legacy program."""
    if _VARIABLE not in os.environ:
        return
    fields = json.loads(os.environ[_VARIABLE])
    fields["legacy"] = frozenset(fields["legacy"])
    fields["forks"] = frozenset(fields["forks"])
    fields["modern"] = tuple(fields["modern"])
    scope = Scope(**fields)
    importing.install(scope)
    _replace_run_code(scope)
    arguments = sys.orig_argv[1:]
    if arguments and arguments[0].endswith(".py") and scope.holds("__main__", arguments[0]):
        vars(sys.modules["__main__"])["__builtins__"] = importing.builtins_of(scope.tf2)


def _replace_run_code(scope: Scope) -> None:
    """`multiprocessing` runs the parent's main file by `runpy`, which asks no loader."""
    import runpy

    run_code = runpy._run_code  # type: ignore[attr-defined]

    def run_legacy_code(
        code: CodeType,
        run_globals: dict[str, Any],
        init_globals: dict[str, Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> dict[str, Any]:
        if scope.holds("__main__", code.co_filename):
            init_globals = {
                **(init_globals or {}),
                "__builtins__": importing.builtins_of(scope.tf2),
            }
        names: dict[str, Any] = run_code(code, run_globals, init_globals, *args, **kwargs)
        return names

    patches.put("legacy imports", runpy, "_run_code", run_legacy_code)
