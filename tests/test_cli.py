"""The command `e2s`: it lists its commands, and says which one it does not have."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from estimator2strategy import __main__

ROOT = Path(__file__).parents[1]


def test_help_lists_the_commands(capsys):
    assert __main__.main(["--help"]) == 0
    assert "doctor" in capsys.readouterr().out


def test_unknown_command_is_named_and_the_others_are_listed(capsys):
    assert __main__.main(["chek"]) == 2
    said = capsys.readouterr().err
    assert "no command 'chek'. Did you mean check?" in said
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
        ["run", "--emulate-tpu-cores=2x", "train.py"],
        ["check", "model.py:model_fn", "--input", "data.py:input_fn", "--cores=0"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_wrong_number_is_refused_with_what_to_give(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        __main__.main(arguments)
    assert ended.value.code == 2
    assert "give a whole number of at least 1" in capsys.readouterr().err


def test_a_backend_of_keras_that_is_not_installed_is_told_in_a_sentence(capsys, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert __main__.main(["checkpoint", "inspect", "model_dir"]) == 2
    assert capsys.readouterr().err == (
        "e2s checkpoint: KERAS_BACKEND=torch, and torch is not installed in this environment: "
        "pip install torch, or unset KERAS_BACKEND\n"
    )
    monkeypatch.setenv("KERAS_BACKEND", "theano")
    assert __main__.main(["checkpoint", "inspect", "model_dir"]) == 2
    assert "Keras has tensorflow, jax, torch" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "record", "verify", "export-step"])
def test_graphs_of_a_legacy_program_are_tensorflows_whatever_the_backend(
    command, capsys, monkeypatch
):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.setitem(__main__._COMMANDS, command, ("tests.test_cli", ""))
    assert __main__.main([command, "train.py"]) == 0
    assert os.environ["KERAS_BACKEND"] == "tensorflow"
    assert "KERAS_BACKEND=torch is not used" in capsys.readouterr().err


def main(argv):
    """Stands for a command."""
    del argv
    return 0


def test_version_is_that_of_the_package(capsys):
    assert __main__.main(["--version"]) == 0
    assert capsys.readouterr().out == "e2s 0.1.0\n"


@pytest.mark.parametrize(
    ("written", "completed"),
    [
        ("e2s ch", {"check ", "checkpoint "}),
        ("e2s check --form", {"--format"}),
        ("e2s checkpoint in", {"inspect "}),
        ("e2s run --emul", {"--emulate-tpu-cores"}),
        ("e2s migrate --wri", {"--write"}),
        ("e2s explain E2S20", {f"E2S20{n}" for n in range(1, 10)}),
        ("e2s explain fixed-b", {"fixed-batch-size"}),
        ("e2s guide trouble", {"troubleshooting"}),
        ("e2s guide rules/e2s2", {"rules/e2s2"}),
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


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (("check", "--fail_on", "error", "--write_baseline"), ("fail_on", "error")),
        (("migrate", "--allow_dirty"), ("allow_dirty", True)),
        (("record", "--batch_size=16", "--program", "p.py", "--batch_size=8"), ("batch_size", 16)),
        (
            ("record", "--program", "p.py", "--batch_size=8"),
            ("program", ["p.py", "--batch_size=8"]),
        ),
        (("verify", "golden", "--eval_input", "m:f"), ("eval_input", "m:f")),
        (("doctor", "--no_import"), ("no_import", True)),
        (("checkpoint", "convert", "a", "b", "--to=tf1", "--write_map=m"), ("write_map", "m")),
        (("run", "--emulate_tpu_cores=8"), ("emulate_tpu_cores", "8")),
    ],
)
def test_options_take_underscores_for_dashes(arguments, value):
    command, *rest = arguments
    parsed = _parser(command).parse_args(rest)
    name, expected = value
    assert getattr(parsed, name) == expected


@pytest.mark.parametrize("command", __main__._COMMANDS)
def test_options_are_declared_with_dashes(command):
    assert not [option for option in _parser(command).options() if "_" in option]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "--fial-on=error"), "there is no option --fial-on. Did you mean --fail-on?"),
        (
            ("record", "--btach_size", "8"),
            "--btach_size. Did you mean --batch-size?",
        ),
        (("migrate", "--xyzzy"), "there is no option --xyzzy. --help lists the arguments."),
        (("doctor", "now"), "there is no place for 'now'"),
        (("record", "--params", "hidden=64"), "'hidden=64' is not JSON"),
        (("record", "--steps", "0"), "'0': give a whole number of at least 1"),
        (("record", "--print", "--out", "golden"), "--print takes no other argument"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_the_one_that_was_meant(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        __main__.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def _parser(command):
    module, _ = __main__._COMMANDS[command]
    return importlib.import_module(module).parser()


COUNTED = """\
import contextlib, io, sys
from estimator2strategy import __main__
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
    __main__.main(sys.argv[1:])
assert said.getvalue()
print(len(sys.modules), *sorted({"tensorflow", "numpy", "keras", "jax"} & {*sys.modules}))
"""


@pytest.mark.parametrize(
    ("command", "most"),
    [
        (["--help"], 80),
        (["check", "examples/mnist_tpu/mnist_tpu.py"], 205),
        (["guide"], 170),
        (["cache"], 130),
        (["doctor", "--no-import"], 225),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_commands_that_only_read_start_with_few_modules(command, most):
    """Counted in modules, which a machine under load does not change: each takes a millisecond."""
    ran = subprocess.run(
        [sys.executable, "-c", COUNTED, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    count, *heavy = ran.stdout.split()
    assert heavy == []
    assert int(count) <= most, count
