"""`e2s cache`: what earlier processes have kept for later ones, and how much of it there is."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from estimator2strategy.engine import kept_folder
from estimator2strategy.engine.command_line import Parser


def main(argv: Sequence[str]) -> int:
    """Runs `e2s cache` with these arguments; returns the exit code."""
    options = parser().parse_args(argv)
    root = kept_folder.root()
    if root is None:
        sys.stdout.write(f"Nothing is kept: {kept_folder.VARIABLE}=off\n")
        return 0
    if options.clear:
        return _clear(root)
    sys.stdout.write(f"{root}\n\n")
    for kind, what in kept_folder.KINDS.items():
        files = kept_folder.files(root / kind)
        size = sum(file.size for file in files)
        sys.stdout.write(f"  {kind:10}{len(files):6} files {_megabytes(size)}  {what}\n")
        for file in files if options.list else ():
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.used))
            sys.stdout.write(f"    {used} {_megabytes(file.size)}  {file.path.name}\n")
    return 0


def parser() -> Parser:
    """Returns the parser of `e2s cache`."""
    made = Parser(
        prog="e2s cache",
        description="Says how much is kept for later processes: steps under JAX's runtime. "
        f"{kept_folder.VARIABLE} names the folder; {kept_folder.VARIABLE}=off keeps nothing.",
        epilog="example: e2s cache --list",
    )
    made.add_argument("--list", action="store_true", help="list the files too")
    made.add_argument("--clear", action="store_true", help="delete all that is kept")
    return made


def _clear(root: Path) -> int:
    """Deletes the folders of KINDS, and nothing else that may be beside them."""
    freed = left = 0
    for kind in kept_folder.KINDS:
        freed += sum(file.size for file in kept_folder.files(root / kind))
        kept_folder.clear(root / kind)
        left += sum(file.size for file in kept_folder.files(root / kind))
    sys.stdout.write(f"{_megabytes(freed - left).strip()} freed\n")
    if left:
        sys.stderr.write(f"e2s cache: {_megabytes(left).strip()} could not be deleted in {root}\n")
    return 1 if left else 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:8.1f} MB"
