"""`e2s record`: records a golden here, or prints the one file that does so elsewhere."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import cast

from estimator2strategy.engine import patches, quiet_import
from estimator2strategy.tools.golden import one_file
from estimator2strategy.tools.golden.recorder import options

_PROG = "e2s record"


def main(argv: Sequence[str]) -> int:
    """Runs `e2s record` with these arguments; returns the exit code."""
    if list(argv) == ["--print"]:
        sys.stdout.write(one_file.source())
        return 0
    if parser().parse_args(list(argv)).print:  # --help and mistakes end here, at once
        parser().error("--print takes no other argument: give them to the file that it prints")
    if said := quiet_import.missing():
        sys.stderr.write(f"{_PROG}: {said}\n")
        return 2
    patches.noted("command's log")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # as the one file does
    quiet_import.import_tensorflow()
    from estimator2strategy.tools.golden.here import Here
    from estimator2strategy.tools.golden.recorder import command

    return cast(int, command.main(list(argv), Here, _PROG))


def parser() -> argparse.ArgumentParser:
    """Returns the parser of `e2s record`."""
    made = options.record_parser(_PROG)
    made.add_argument(
        "--print",
        action="store_true",
        help="print the recorder as one file, for the old environment; takes no other argument",
    )
    return cast(argparse.ArgumentParser, made)
