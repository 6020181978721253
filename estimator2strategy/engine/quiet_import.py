"""Imports TensorFlow as quietly as `TF_CPP_MIN_LOG_LEVEL` asks, and without what can wait.

TensorFlow's native libraries log while they are loaded, before they read that variable: "oneDNN
custom operations are on", "Could not find cuda drivers". So during the import standard error goes
through a process that leaves those lines out. All other lines pass at once, even if this process
dies in the import.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator

from estimator2strategy.engine import patches, put_off

# The first letter of a line -> the level of TF_CPP_MIN_LOG_LEVEL from which it is hidden.
_HIDDEN_FROM = {"I": 1, "W": 2, "E": 3}
_BEFORE_LOGGING = r"WARNING: All log messages before absl::InitializeLog\(\) is called"
# Another process that holds the pipe (a library started it) does not hold up the program.
_SECONDS_TO_END = 5


def missing() -> str | None:
    """Returns the sentence for a command that needs TensorFlow; None if it is installed."""
    if importlib.util.find_spec("tensorflow"):
        return None
    return (
        "TensorFlow is not installed in this environment: pip install 'tensorflow>=2.16'; "
        "`e2s doctor` says what else is missing"
    )


def import_tensorflow() -> None:
    """Imports TensorFlow; hides the lines of its native code that TF_CPP_MIN_LOG_LEVEL excludes.

    Does nothing if TensorFlow is imported already, and nothing but import it if the variable is not
    set, or is 0.

    Raises:
        ModuleNotFoundError: TensorFlow is not installed.
    """
    if "tensorflow" not in sys.modules:
        with _without(_hidden_lines()), put_off.imports_of_tensorflow():
            importlib.import_module("tensorflow")


def _hidden_lines() -> str | None:
    """A pattern of the lines to leave out, or None if all are wanted."""
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "")
    letters = [
        c
        for c, hidden_from in _HIDDEN_FROM.items()
        if level.isdigit() and int(level) >= hidden_from
    ]
    # As absl writes them before it knows the time zone: `I0000 00:00:1795469726.548947`.
    return f"^({_BEFORE_LOGGING}|[{''.join(letters)}]0000 00:00:)" if letters else None


@contextlib.contextmanager
def _without(pattern: str | None) -> Iterator[None]:
    """Lets the lines of standard error through that do not match; as it was where it cannot."""
    try:
        before = os.dup(2) if pattern else None
    except OSError:  # a process without standard error
        before = None
    if before is None:
        yield
        return
    try:
        sieve = subprocess.Popen(
            ["grep", "--line-buffered", "-a", "-v", "-E", str(pattern)],
            stdin=subprocess.PIPE,
            stdout=before,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError:  # a machine without grep
        os.close(before)
        yield
        return
    assert sieve.stdin is not None
    patches.noted("quiet libraries")
    os.dup2(sieve.stdin.fileno(), 2)
    sieve.stdin.close()
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        with contextlib.suppress(subprocess.TimeoutExpired):
            sieve.wait(_SECONDS_TO_END)
