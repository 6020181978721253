"""The command `e2s`: a table of its commands, each a module whose `main` is imported to run it.

    e2s doctor --json               # is estimator2strategy.tools.check.doctor.main(["--json"])

What `main` returns is the exit code; 0 or None is success. `parser()` of the same module says what
the command takes.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence

from estimator2strategy import __version__
from estimator2strategy.engine import patches

# Command -> the module whose `main(arguments)` it is, and what it does.
_COMMANDS = {
    "check": (
        "estimator2strategy.tools.check.check_command",
        "report the lines of a program that will fail, or change their meaning",
    ),
    "explain": (
        "estimator2strategy.tools.check.explain",
        "explain a rule of `e2s check`, and what to do about its findings",
    ),
    "doctor": (
        "estimator2strategy.tools.check.doctor",
        "list what is installed here, and versions that clash",
    ),
    "migrate": (
        "estimator2strategy.tools.migrate.migrate_command",
        "rewrite a program towards TensorFlow 2, one stage at a time",
    ),
    "checkpoint": (
        "estimator2strategy.tools.checkpoint.checkpoint_command",
        "inspect, compare and convert checkpoints of TF1, TF2 and Keras",
    ),
    "record": (
        "estimator2strategy.tools.golden.record_command",
        "record what a model does, in the old environment or here",
    ),
    "verify": (
        "estimator2strategy.tools.golden.verify",
        "compare such a recording with what the model does here",
    ),
    "export-step": (
        "estimator2strategy.tools.artifact.export_command",
        "write a training step as a folder that trains where only JAX is",
    ),
    "export-for": (
        "estimator2strategy.tools.exports.export_for",
        "rewrite an exported model for TF 1.15, TF 2, Keras or a converter",
    ),
    "run": (
        "estimator2strategy.legacy.run",
        "run an unchanged TF 1.x program on today's TensorFlow",
    ),
    "cache": (
        "estimator2strategy.tools.shell.cache",
        "say how much is kept for later processes, or delete it",
    ),
    "guide": (
        "estimator2strategy.tools.shell.guide",
        "list the pages of the migration guide, or print one",
    ),
}

# Commands that run a program's graphs, and the options with which `check` does.
_OF_GRAPHS = {"run", "record", "verify", "check", "export-step"}
_RUNNING = ("--levels", "--input", "--program", "--golden")
_BACKENDS = ("tensorflow", "jax", "torch")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `e2s` with these arguments, by default those of the process; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks
        importlib.import_module("estimator2strategy.tools.shell.completion").complete(_COMMANDS)
    if argv and argv[0] in _COMMANDS:
        module, _ = _COMMANDS[argv[0]]
        if problem := _keras_backend(argv):
            sys.stderr.write(f"e2s {argv[0]}: {problem}\n")
            return 2
        try:
            command = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if (error.name or __package__).startswith(str(__package__)):
                raise
            sys.stderr.write(_missing(argv[0], str(error.name)))
            return 2
        return command.main(argv[1:]) or 0
    if argv and argv[0] == "--version":
        sys.stdout.write(f"e2s {__version__}\n")
        return 0
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(_help())
        return 0
    sys.stderr.write((_unknown(argv[0]) if argv else "") + _help())
    return 2


def _keras_backend(argv: Sequence[str]) -> str | None:
    """Chooses Keras's backend for a command; returns why it cannot be, if so.

    Commands that run a legacy program build TensorFlow's graphs, also of its Keras layers.
    """
    command, wanted = argv[0], os.environ.get("KERAS_BACKEND", "")
    if command in _OF_GRAPHS:
        patches.noted("command's backend")
        os.environ["KERAS_BACKEND"] = "tensorflow"
        runs = command != "check" or any(a.startswith(_RUNNING) for a in argv)
        if wanted not in ("", "tensorflow") and runs:
            sys.stderr.write(
                f"e2s {command}: KERAS_BACKEND={wanted} is not used, because the graphs of a "
                "legacy program are TensorFlow's\n"
            )
    elif command == "checkpoint" and wanted not in ("", "tensorflow"):
        if wanted not in _BACKENDS:
            return f"KERAS_BACKEND={wanted}: Keras has {', '.join(_BACKENDS)}; set one, or none"
        if importlib.util.find_spec(wanted) is None:
            return (
                f"KERAS_BACKEND={wanted}, and {wanted} is not installed in this environment: "
                f"pip install {wanted}, or unset KERAS_BACKEND"
            )
    return None


def _unknown(command: str) -> str:
    from estimator2strategy.engine.spelling import did_you_mean

    hint = did_you_mean(command, _COMMANDS, "There are these:")
    return f"e2s: there is no command {command!r}. {hint}\n\n"


def _missing(command: str, package: str) -> str:
    return (
        f"e2s {command}: {package} is not installed in this environment; "
        "`e2s doctor` says what is missing\n"
    )


def _help() -> str:
    width = max(map(len, _COMMANDS))
    lines = [f"  {name:{width}}  {what}" for name, (_, what) in _COMMANDS.items()]
    return "\n".join(
        [
            "usage: e2s COMMAND ...",
            "",
            "Runs, checks and migrates programs written for TensorFlow's Estimator.",
            "",
            *lines,
            "",
            "`e2s COMMAND --help` says more about a command, with examples.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
