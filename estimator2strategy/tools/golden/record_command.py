"""`e2s record`: records a golden here, or prints the one file that does so elsewhere.

The one file is without dependencies, to copy to where the program runs today:

    e2s record --print > record.py
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from estimator2strategy import __version__
from estimator2strategy.engine import patches, quiet_import
from estimator2strategy.tools.golden.recorder import options

_PACKAGE = Path(__file__).parents[2]
# Each needs only those before it.
_MODULES = (
    "engine/spelling",
    "engine/command_line",
    *(
        f"tools/golden/recorder/{name}"
        for name in (
            "options",
            "batches",
            "feeds",
            "recorder",
            "programs",
        )
    ),
)
_HEAD = f'''\
"""Records what a model does here: a golden, for `e2s verify` to hold another TensorFlow against.

    python record.py --out golden --program train.py --data_dir=/data
    python record.py --out golden trainer.model:model_fn --input trainer.model:input_fn

Runs wherever there is an Estimator: Python 3.6 or newer, TensorFlow 1.13 to 2.15, nothing else but
numpy. Made from estimator2strategy {__version__} by `e2s record --print`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
'''


def one_file() -> str:
    """The recorder's modules, one after the other, with all imports at the top."""
    imports: set[str] = set()
    bodies = [_body(_PACKAGE / f"{name}.py", imports) for name in _MODULES]
    return "\n\n".join([_HEAD + "\n".join(sorted(imports)), *bodies])


def _body(path: Path, imports: set[str]) -> str:
    """A module without its docstring and imports, which are added to `imports` unless ours."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        is_import = isinstance(node, (ast.Import, ast.ImportFrom))
        if is_import or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if is_import and "estimator2strategy" not in source:
                imports.add(source)
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines).strip() + "\n"


_PROG = "e2s record"


def main(argv: Sequence[str]) -> int:
    """Runs `e2s record` with these arguments; returns the exit code."""
    if list(argv) == ["--print"]:
        sys.stdout.write(one_file())
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
    from estimator2strategy.tools.golden.recorder import programs

    return cast(int, programs.main(list(argv), Here, _PROG))


def parser() -> argparse.ArgumentParser:
    """Returns the parser of `e2s record`."""
    made = options.record_parser(_PROG)
    made.add_argument(
        "--print",
        action="store_true",
        help="print the recorder as one file, for the old environment; takes no other argument",
    )
    return cast(argparse.ArgumentParser, made)
