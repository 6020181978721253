"""TensorFlow's native lines are shown or hidden as TF_CPP_MIN_LOG_LEVEL says; all else is shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# A module named tensorflow that writes what TensorFlow 2.21 writes while it is imported.
NATIVE = """\
import os
import sys
import warnings

os.write(2, b"WARNING: All log messages before absl::InitializeLog() is called\\n")
os.write(2, b"I0000 00:00:1795469726.548947   14695 port.cc:153] oneDNN operations are on.\\n")
os.write(2, b"E0000 00:00:1795469757.326415   14695 cuda_platform.cc:52] failed call to cuInit\\n")
print("I am the program's", file=sys.stderr)
warnings.warn("a warning")
if os.environ.get("DIES"):
    os.write(2, b"F0000 00:00:1795469757.326415 this CPU has no AVX\\n")
    os.abort()
"""
PROGRAM = """\
import os, sys
from estimator2strategy.engine import quiet_import
quiet_import.import_tensorflow()
os.write(2, b"I0000 00:00:1795469757.4 after the import\\n")
print(len(os.listdir("/proc/self/fd")))
"""
ROOT = Path(__file__).parents[2]


def printed(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a process writes that imports the stand-in for TensorFlow."""
    (folder / "tensorflow.py").write_text(NATIVE)
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "PYTHONPATH": f"{folder}:{ROOT}", **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("level", "info", "error"),
    [("", True, True), ("0", True, True), ("2", False, True), ("3", False, False)],
)
def test_the_level_decides_which_native_lines_of_the_import_are_shown(tmp_path, level, info, error):
    ran = printed(tmp_path, **({"TF_CPP_MIN_LOG_LEVEL": level} if level else {}))
    assert ran.returncode == 0, ran.stderr
    assert ("oneDNN" in ran.stderr) == info
    assert ("InitializeLog" in ran.stderr) == info
    assert ("failed call to cuInit" in ran.stderr) == error


def test_all_else_that_is_written_during_the_import_and_all_after_it_is_shown(tmp_path):
    ran = printed(tmp_path, TF_CPP_MIN_LOG_LEVEL="3")
    assert "I am the program's" in ran.stderr
    assert "UserWarning: a warning" in ran.stderr
    assert "after the import" in ran.stderr


def test_no_descriptor_is_left_open(tmp_path):
    loud, quiet = printed(tmp_path), printed(tmp_path, TF_CPP_MIN_LOG_LEVEL="3")
    assert quiet.stdout == loud.stdout


def test_the_last_words_of_a_process_that_dies_in_the_import_are_shown(tmp_path):
    ran = printed(tmp_path, TF_CPP_MIN_LOG_LEVEL="3", DIES="1")
    assert ran.returncode != 0
    assert "this CPU has no AVX" in ran.stderr


@pytest.mark.parametrize("path", ["/nowhere"])
def test_a_machine_without_grep_shows_all(tmp_path, path):
    ran = printed(tmp_path, TF_CPP_MIN_LOG_LEVEL="3", PATH=path)
    assert ran.returncode == 0, ran.stderr
    assert "oneDNN" in ran.stderr
