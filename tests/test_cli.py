"""The command `e2s`: it lists its commands, and says which one it does not have."""

from __future__ import annotations

import importlib.util
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


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "explain",
        "doctor",
        "migrate",
        "checkpoint",
        "checkpoint inspect",
        "checkpoint diff",
        "checkpoint convert",
        "record",
        "verify",
        "run",
        "guide",
    ],
)
def test_help_of_every_command_has_an_example_of_it(capsys, command):
    with pytest.raises(SystemExit) as ended:
        __main__.main([*command.split(), "--help"])
    assert ended.value.code == 0
    _, found, examples = capsys.readouterr().out.partition("example")
    assert found
    assert f"e2s {command}" in examples


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "--out", "nowhere", "--program", "train.py"],
        ["verify", "golden"],
        ["checkpoint", "inspect", "model_dir"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_without_tensorflow_says_what_to_install(capsys, monkeypatch, arguments):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert __main__.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"e2s {arguments[0]}: TensorFlow is not installed in this environment")
    assert "pip install 'tensorflow>=2.16'" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--emulate_tpu_cores=2x", "train.py"],
        ["check", "model.py:model_fn", "--input", "data.py:input_fn", "--cores=0"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_wrong_number_is_refused_with_what_to_give(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        __main__.main(arguments)
    assert ended.value.code == 2
    assert "give a whole number of at least 1" in capsys.readouterr().err


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
