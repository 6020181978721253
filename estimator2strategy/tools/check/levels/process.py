"""Runs a level in a process of its own: what a program prints, hangs in or dies of stays there."""

from __future__ import annotations

import dataclasses
import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator2strategy.engine import patches
from estimator2strategy.tools.check.check_report import Evidence, LevelReport
from estimator2strategy.tools.check.request import LEVELS, Asked

# How much of what a process that died had said is shown.
_LAST_LINES = 15


def run(asked: Asked, level: Evidence) -> LevelReport:
    """The report of a level on a model; a process that fails is a problem in it."""
    limit = asked.time_limit or LEVELS[level].seconds
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="e2s_check_") as folder:
        problem = _run(asked, level, Path(folder), limit)
        result = Path(folder, "report")
        if problem is None and result.exists():
            report: LevelReport = pickle.loads(result.read_bytes())
            return report
    seconds = time.perf_counter() - start
    problem = problem or "its process ended without a result"
    return LevelReport(level, asked.name, problems=(problem,), seconds=seconds)


def _run(asked: Asked, level: Evidence, folder: Path, limit: float) -> str | None:
    """Runs the process; returns what went wrong, if anything."""
    Path(folder, "asked").write_bytes(pickle.dumps((asked, level)))
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3"),
        "TMPDIR": str(folder),  # what is left there goes with the folder
    }
    with Path(folder, "said").open("w+", encoding="utf-8", errors="replace") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "estimator2strategy.tools.check.levels.run_level", str(folder)],
            cwd=asked.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            return (
                f"not done within {limit:g} seconds, and stopped. Give it more with --time-limit; "
                "or is there an endless loop in input_fn or model_fn?" + _last_lines(said)
            )
        finally:
            _end(child)
        if code != 0:
            return f"its process {_ended(code)}{_last_lines(said)}"
    return None


def _end(child: subprocess.Popen[Any]) -> None:
    """Ends a process that is still there, with those that it started."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _ended(code: int) -> str:
    if code < 0:
        name = signal.Signals(-code).name
        out_of_memory = " (out of memory?)" if name == "SIGKILL" else ""
        return f"was ended by {name}{out_of_memory}"
    return f"ended with exit code {code}"


def _last_lines(said: Any) -> str:
    said.seek(0)
    lines = [line.rstrip() for line in said.read().splitlines() if line.strip()]
    if not lines:
        return ""
    return "\n  It said last:\n" + "\n".join(f"    {line}" for line in lines[-_LAST_LINES:])


def main(folder: str) -> None:
    """Runs in the process: makes the subject, runs the level, leaves the report in `folder`."""
    threading.Thread(target=_end_without, args=[os.getppid()], daemon=True).start()
    asked, level = pickle.loads(Path(folder, "asked").read_bytes())
    patches.noted("command's search path")
    sys.path += [entry for entry in asked.path if entry not in sys.path]
    report = report_of(asked, level)
    Path(folder, "report").write_bytes(pickle.dumps(report))
    # Threads of the program may go on for ever, and nothing that is left matters.
    sys.stdout.flush()
    os._exit(0)


def _end_without(parent: int) -> None:
    """Ends this process, and those that it started, when the check that wants the report is gone.

    A check that is killed cannot end them itself.
    """
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def report_of(asked: Asked, level: Evidence) -> LevelReport:
    """The report of a level on a model, made in this process."""
    start = time.perf_counter()
    try:
        import tensorflow as tf
    except ModuleNotFoundError as error:
        problem = f"this level calls the program, and needs TensorFlow here ({error})"
        return LevelReport(level, asked.name, problems=(problem,))
    from estimator2strategy.engine.runtime import devices
    from estimator2strategy.tools.check.levels.check_error import CheckError
    from estimator2strategy.tools.check.levels.load import subject_of
    from estimator2strategy.tools.check.levels.subject import without_absent_modes

    patches.noted("command's log")
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    try:
        devices.emulate(asked.cores)
        check: Callable[..., LevelReport] = importlib.import_module(LEVELS[level].module).check
        left_out: tuple[str, ...] = ()
        if LEVELS[level].runs_the_program:
            report = check(asked)
        else:
            subject = subject_of(asked)
            if not asked.modes:
                subject, left_out = without_absent_modes(subject)
            report = check(subject)
        report = dataclasses.replace(report, not_checked=(*left_out, *report.not_checked))
    except CheckError as error:
        report = LevelReport(level, asked.name, problems=(str(error),))
    beyond = tuple(what for what in LEVELS[level].beyond if what not in report.not_checked)
    return dataclasses.replace(
        report,
        not_checked=(*report.not_checked, *beyond),
        seconds=time.perf_counter() - start,
    )
