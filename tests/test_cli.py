"""The command `e2s`: it lists its commands, and says which one it does not have."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from estimator2strategy import __main__


def test_help_lists_the_commands(capsys):
    assert __main__.main(["--help"]) == 0
    assert "doctor" in capsys.readouterr().out


def test_unknown_command_is_named_and_the_others_are_listed(capsys):
    assert __main__.main(["chek"]) == 2
    said = capsys.readouterr().err
    assert "no command 'chek'; did you mean `e2s check`?" in said
    assert "doctor" in said


def test_no_command_is_an_error(capsys):
    assert __main__.main([]) == 2
    assert "usage: e2s" in capsys.readouterr().err


def test_version_is_that_of_the_package(capsys):
    assert __main__.main(["--version"]) == 0
    assert capsys.readouterr().out == "e2s 0.1.0\n"


@pytest.mark.parametrize(
    ("written", "completed"),
    [
        ("e2s ch", {"check ", "checkpoint "}),
        ("e2s check --form", {"--format"}),
        ("e2s checkpoint in", {"inspect "}),
        ("e2s run --emul", {"--emulate_tpu_cores"}),
        ("e2s migrate --wri", {"--write"}),
    ],
)
def test_a_shell_completes_commands_and_options(tmp_path, written, completed):
    pytest.importorskip("argcomplete")
    answer = tmp_path / "answer"
    asks = {"_ARGCOMPLETE": "1", "COMP_LINE": written, "COMP_POINT": str(len(written))}
    to = {"_ARGCOMPLETE_STDOUT_FILENAME": str(answer), "_ARGCOMPLETE_IFS": "\013"}
    command = [sys.executable, "-m", "estimator2strategy"]
    subprocess.run(command, env={**os.environ, **asks, **to}, check=True)
    assert {word.rstrip() for word in answer.read_text().split("\013")} == {
        word.rstrip() for word in completed
    }
