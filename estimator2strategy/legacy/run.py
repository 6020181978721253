"""Runs an unchanged legacy program as `__main__`, as `python program.py` would."""

from __future__ import annotations

import dataclasses
import importlib.machinery
import importlib.util
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType, TracebackType
from typing import NoReturn

from estimator2strategy.engine import legacy_code, patches, quiet_import
from estimator2strategy.engine.command_line import Parser
from estimator2strategy.engine.legacy_code import Scope
from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.engine.runtime import console, requested_strategy
from estimator2strategy.engine.runtime.requested_job import (
    PRECISION_VARIABLE,
    RUNTIME_VARIABLE,
    Runtime,
)
from estimator2strategy.errors import EstimatorToStrategyError
from estimator2strategy.legacy import children, importing, python2
from estimator2strategy.legacy.run_options import job_of, parser

_PACKAGE = str(Path(__file__).parents[1])
_OURS = (_PACKAGE, "<frozen")
_NOT_OF_PROGRAM = (
    *_OURS,
    *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")},
)

_SECONDS_BETWEEN_LINES = 60.0


def main(argv: Sequence[str]) -> None:
    """`e2s run` with these arguments; comes back when the program has ended by itself."""
    ours = parser()
    options, target = _split(list(argv), ours)
    arguments, unknown = ours.parse_known_args(options)
    if unknown:
        ours.refuse(unknown[0], "Flags of the program come after its name.")
    if not target:
        ours.error("which program? Give a file, or -m and a module")
    is_module = target[0] == "-m"
    name, *rest = target[is_module:]
    run(
        ProgramToRun(name, is_module, tuple(rest)),
        emulate_tpu_cores=arguments.emulate_tpu_cores,
        strategy=arguments.strategy,
        profile_dir=arguments.profile_dir,
        runtime=arguments.runtime,
        precision=arguments.precision,
        job=job_of(arguments),
        check_compiled=arguments.check_compiled,
        legacy_modules=tuple(arguments.legacy_module),
        modern_modules=tuple(arguments.modern_module),
        forks=tuple(arguments.fork),
        tf2=arguments.tf2,
    )


@dataclasses.dataclass(frozen=True)
class ProgramToRun:
    """A program to run: a file, or with `is_module` a module's name, and its own `arguments`."""

    target: str
    is_module: bool = False
    arguments: tuple[str, ...] = ()


def run(
    program: ProgramToRun,
    *,
    emulate_tpu_cores: int | str | None = None,
    strategy: str | None = None,
    profile_dir: str | None = None,
    runtime: Runtime | None = None,
    precision: Precision | None = None,
    job: Mapping[str, str | None] = MappingProxyType({}),
    check_compiled: bool = False,
    legacy_modules: tuple[str, ...] = (),
    modern_modules: tuple[str, ...] = (),
    forks: tuple[str, ...] = (),
    tf2: bool = False,
) -> None:
    """Runs a program in this process, which is then the program's: nothing is put back.

    Args:
        program: The program to run.
        emulate_tpu_cores: The number of TPU cores to emulate, or hosts x cores of each (`2x4`).
        strategy: Under which Estimators train, a name of `requested_strategy.NAMES`.
        profile_dir: The folder for profiles of trainings, for TensorBoard.
        runtime, precision: As of TrainingOptions.
        job: The environment's variables of `requested_job`, those that are given.
        check_compiled: As of TrainingOptions.
        legacy_modules: Installed packages that are legacy code too.
        modern_modules: Patterns of the program's modules that are TF2 code.
        forks: Modules of the program that are copies of TensorFlow's tpu_estimator.py.
        tf2: The program was written for TF 2.0 to 2.15.
    """
    scope = Scope(
        legacy=frozenset(legacy_modules),
        modern=modern_modules,
        whole_program=True,
        tf2=tf2,
        forks=frozenset(forks),
    )
    patches.put("program", sys, "excepthook", _show)
    if said := quiet_import.missing():
        sys.exit(f"e2s run: {said}")
    console.show_plain_lines(_SECONDS_BETWEEN_LINES)
    _set_environment(
        {
            "E2S_EMULATE_TPU_CORES": str(emulate_tpu_cores) if emulate_tpu_cores else None,
            requested_strategy.VARIABLE: strategy,
            "E2S_PROFILE_DIR": profile_dir and os.path.abspath(profile_dir),
            "E2S_CHECK_COMPILED": "1" if check_compiled else None,
            RUNTIME_VARIABLE: runtime and runtime.value,
            PRECISION_VARIABLE: precision and precision.value,
            **job,
        }
    )
    try:
        _run_as_main(program, scope)
    finally:
        if strategy and requested_strategy.unused():
            sys.stderr.write(
                f"e2s: --strategy={strategy} was not used: no Estimator was made in this process\n"
            )


def _run_as_main(program: ProgramToRun, scope: Scope) -> None:
    """Runs a program, with the TensorFlow that `scope` gives to its modules."""
    importing.install(scope)
    _set_path(program)
    if program.is_module and legacy_code.is_installed(program.target):
        scope |= Scope(legacy=frozenset({program.target.partition(".")[0]}))
        importing.install(scope)
    is_legacy = not legacy_code.is_migrated(_file_of(program))
    # Before any of it runs: the packages that a module is in may import TensorFlow.
    scope = dataclasses.replace(scope, graph_mode=is_legacy and not scope.tf2)
    importing.install(scope)
    module, code = _main_of(program)
    children.inherit(scope)
    patches.noted("program")
    sys.modules["__main__"] = module
    if is_legacy:
        importing.execute(code, module, tf2=scope.tf2)
    else:
        exec(code, vars(module))


def _set_environment(options: Mapping[str, str | None]) -> None:
    """Leaves options where Estimators look for them, in child processes, too.

    Args:
        options: Name of a variable -> its value; None: the option was not given.
    """
    patches.noted("program")
    os.environ.update({name: value for name, value in options.items() if value})


def _set_path(program: ProgramToRun) -> None:
    """Makes `sys.path` the program's own."""
    folder = os.path.dirname(os.path.realpath(program.target))
    patches.noted("program")
    sys.path[0] = os.getcwd() if program.is_module else folder


def _file_of(program: ProgramToRun) -> str:
    """The file of a program, or "" where there is none; imports none of the program."""
    if not program.is_module:
        return program.target if os.path.isfile(program.target) else ""
    spec = _find(program.target)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find(f"{program.target}.__main__")
    return (spec and spec.origin) or ""


def _find(module: str) -> importlib.machinery.ModuleSpec | None:
    """Like `importlib.util.find_spec`, which imports the packages that `module` is in."""
    package = module.rpartition(".")[0]
    path = None
    if package:
        parent = _find(package)
        path = parent.submodule_search_locations if parent is not None else None
        if path is None:
            return None
    finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
    specs = (finder.find_spec(module, path) for finder in finders)
    return next(filter(None, specs), None)


def _main_of(program: ProgramToRun) -> tuple[ModuleType, CodeType]:
    """The `__main__` module for a program, and its code; `sys.argv` is its own."""
    if program.is_module:
        spec = _spec_of(program.target)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{program.target}.__main__")
        if spec is None or spec.loader is None or spec.origin is None:
            _refuse(f"no module {program.target!r} (in {os.getcwd()} or installed)")
        path = spec.origin
    else:
        path = program.target
        if os.path.isdir(path):
            _refuse(f"{path!r} is a folder; name a file in it, or -m and a module")
        if not os.path.isfile(path):
            _refuse(f"no file {path!r}")
        spec = None
    patches.put("program", sys, "argv", [path, *program.arguments])
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    try:
        code = compile(loader.get_data(path), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        python2.explain(error)
        raise
    module = ModuleType("__main__")
    module.__file__ = path
    module.__spec__ = spec
    module.__loader__ = loader
    module.__package__ = spec.parent if spec is not None else None
    return module, code


def _refuse(why: str) -> NoReturn:
    sys.stderr.write(f"e2s run: {why}\n")
    sys.exit(2)


def _spec_of(module: str) -> importlib.machinery.ModuleSpec | None:
    """As `find_spec`; None also if a package that it would be in is not there."""
    try:
        return importlib.util.find_spec(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return None
        raise


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints an uncaught error without our own frames, and a hint where there is one."""
    report = traceback.TracebackException(kind, error, trace)
    shows_all = os.environ.get("E2S_TRACEBACK") == "full"
    if not shows_all:
        _shorten(report, error)
    text = "".join(report.format())
    sys.stderr.write(text if shows_all else _without_stacks_of_ops(text))
    for hint in filter(None, (python2.hint(error), _foreign_hint(error, trace))):
        sys.stderr.write(f"e2s: {hint}\n")


def _without_stacks_of_ops(text: str) -> str:
    """Returns a report whose "Original stack trace" of an op has the lines of the program alone.

    TensorFlow's text names each frame of its own, and ours, in a line.
    """
    lines, in_stack = [], False
    for line in text.splitlines(keepends=True):
        in_stack = line.startswith("Original stack trace for") or (in_stack and line[:2] == "  ")
        place = line.removeprefix('  File "')
        if not in_stack or not place.startswith(_NOT_OF_PROGRAM):
            lines.append(line)
    return "".join(lines)


def _shorten(report: traceback.TracebackException, error: BaseException) -> None:
    """Takes frames out of a report: ours, and of a refusal all that are not the program's.

    A refusal is about the program, and what this package was doing then is no news to its user. Of
    other errors the frame that raised stays. A stack of which nothing would be left is kept whole.
    A cause that our message quotes is left out with it.
    """
    if _is_quoted(report, error):
        report.__cause__ = None
    refusal = isinstance(error, EstimatorToStrategyError) or _is_said(report)
    hidden = _NOT_OF_PROGRAM if refusal else _OURS
    shown = [frame for frame in report.stack if not frame.filename.startswith(hidden)]
    for last in report.stack[-1:]:
        if last not in shown and not refusal and last.filename != importing.__file__:
            shown.append(last)
    report.stack[:] = shown or report.stack
    if report.__cause__ is not None and error.__cause__ is not None:
        _shorten(report.__cause__, error.__cause__)
    elif refusal:
        report.__context__ = None
    elif report.__context__ is not None and error.__context__ is not None:
        _shorten(report.__context__, error.__context__)


def _is_said(report: traceback.TracebackException) -> bool:
    """True if a `raise` of ours made the error: it is a message, and no fault of our code."""
    last = report.stack[-1]
    return last.filename.startswith(_PACKAGE) and (last.line or "").startswith("raise ")


def _is_quoted(report: traceback.TracebackException, error: BaseException) -> bool:
    """True if our message has that of the error's cause, in whose stack the program has no line.

    So has our error of TensorFlow's class: it tells TensorFlow's own by the names of the program.
    """
    cause = report.__cause__
    if cause is None or not report.stack[-1].filename.startswith(_PACKAGE):
        return False
    if not all(frame.filename.startswith(_NOT_OF_PROGRAM) for frame in cause.stack):
        return False
    said = str(error.__cause__)
    return type(error) is type(error.__cause__) or (bool(said) and said in str(error))


_TENSORFLOW = re.compile(r"\btensorflow(_estimator)?\b")  # and no library of a longer name


def _foreign_hint(error: BaseException, trace: TracebackType | None) -> str | None:
    """The advice if an installed package failed because it expects TF 1.x; None if none did."""
    if not isinstance(error, (AttributeError, ImportError)) or not _TENSORFLOW.search(str(error)):
        return None
    last = None
    while trace is not None:
        package = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if package != "tensorflow":  # its modules answer for themselves: module_wrapper
            last = trace.tb_frame, package
        trace = trace.tb_next
    if last is None or legacy_code.mark_in(last[0].f_globals):
        return None
    package = last[1]
    if not package or package == "estimator2strategy":
        return None
    return (
        f"{package} is an installed package, and got the TensorFlow that is installed. If it was "
        f"written for TensorFlow 1.x: e2s run --legacy-module={package} ..."
    )


def _split(argv: list[str], parser: Parser) -> tuple[list[str], list[str]]:
    """Our options, and the rest from the program (or `-m MODULE`) on.

    argparse itself would take flags of the program for its own.
    """
    takes_value = {
        option
        for action in parser._actions
        if action.nargs is None
        for option in action.option_strings
    }
    i = 0
    while i < len(argv) and argv[i].startswith("-"):
        if argv[i] == "-m":
            return (argv[:i], argv[i:]) if i + 1 < len(argv) else (argv[:i], [])
        i += 2 if parser.declared(argv[i]) in takes_value else 1
    return argv[:i], argv[i:]
