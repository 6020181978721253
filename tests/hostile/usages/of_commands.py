"""Wrong usages of the command `e2s`: its place is the command line."""

from __future__ import annotations

from typing import Any

from estimator2strategy import __main__ as command
from tests.hostile.usages.usage import Usage


def e2s(*arguments: str) -> Any:
    """The command, in this process."""
    code = command.main(arguments)
    if code:
        raise SystemExit(code)


COMMANDS = (
    Usage("no such command", "chekc", lambda d: e2s("chekc", ".")),
    Usage("check: no such path", "/no/such", lambda d: e2s("check", "/no/such")),
    Usage("check: no path", "files or folders", lambda d: e2s("check")),
    Usage("check: no such format", "--format", lambda d: e2s("check", "--format", "pdf", ".")),
    Usage("check: no such option", "--pathh", lambda d: e2s("check", "--pathh", ".")),
    Usage("check: no such level", "--level", lambda d: e2s("check", "--level", "deep", ".")),
    Usage("explain: no such rule", "E2S-nothing", lambda d: e2s("explain", "E2S-nothing")),
    Usage("migrate: no such path", "/no/such", lambda d: e2s("migrate", "/no/such")),
    Usage("migrate: no such tier", "--tier", lambda d: e2s("migrate", "--tier", "reckless", ".")),
    Usage("run: no such file", "/no/such.py", lambda d: e2s("run", "/no/such.py")),
    Usage("run: no file", "program", lambda d: e2s("run")),
    Usage(
        "run: no such strategy", "--strategy", lambda d: e2s("run", "--strategy", "fast", "a.py")
    ),
    Usage(
        "run: cores are a word",
        "--emulate-tpu",
        lambda d: e2s("run", "--emulate-tpu", "two", "a.py"),
    ),
    Usage(
        "checkpoint: no such path", "/no/such", lambda d: e2s("checkpoint", "inspect", "/no/such")
    ),
    Usage("checkpoint: no such command", "show", lambda d: e2s("checkpoint", "show", "/no/such")),
    Usage("record: no input", "--input", lambda d: e2s("record", "/no/such.py:build")),
    Usage("verify: no such golden", "/no/such", lambda d: e2s("verify", "/no/such")),
    Usage("doctor: no such option", "--jason", lambda d: e2s("doctor", "--jason")),
)

TABLES = {"`e2s`": COMMANDS}
