"""`e2s guide`: where the pages of the migration guide are, or the text of one."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from estimator2strategy import __file__ as _package
from estimator2strategy.engine.command_line import Parser, completed_by
from estimator2strategy.engine.spelling import did_you_mean

# A wheel carries the pages inside of the package; in a checkout they stand beside it.
_PLACES = (Path(_package).parent, Path(_package).parents[1])


def main(argv: Sequence[str]) -> int:
    """Runs `e2s guide` with these arguments; returns the exit code."""
    options = parser().parse_args(argv)
    folder = guide_folder()
    if folder is None:
        sys.stderr.write(f"e2s guide: no migration_guide in {' or '.join(map(str, _PLACES))}\n")
        return 1
    of_guide = pages(folder)
    if options.page is None:
        width = max(map(len, of_guide))
        lines = [f"  {name:{width}}  {_title(path)}" for name, path in of_guide.items()]
        sys.stdout.write("\n".join([str(folder), "", *lines, ""]))
        return 0
    name = options.page.removeprefix("migration_guide/").partition("#")[0].removesuffix(".md")
    if name not in of_guide:
        hint = did_you_mean(name, of_guide, "Without a page, all are listed.")
        if re.fullmatch(r"E2S\d+", name):
            hint = f"`e2s explain {name}` explains a rule."
        sys.stderr.write(f"e2s guide: there is no page {name!r}. {hint}\n")
        return 2
    sys.stdout.write(of_guide[name].read_text(encoding="utf-8"))
    return 0


def parser() -> Parser:
    """Returns the parser of `e2s guide`."""
    made = Parser(
        prog="e2s guide",
        description="Prints a page of the migration guide; without one, lists them all.",
        epilog="example: e2s guide troubleshooting",
    )
    page = made.add_argument("page", nargs="?", metavar="PAGE", help="tpu, rules/e2s2 or tpu.md")
    completed_by(page, lambda: list(pages(folder)) if (folder := guide_folder()) else [])
    return made


def guide_folder() -> Path | None:
    """The folder `migration_guide` of this installation."""
    folders = (place / "migration_guide" for place in _PLACES)
    return next((folder for folder in folders if folder.is_dir()), None)


@functools.cache
def address() -> str:
    """Returns the address of the guide: the one that a release states, or that of its folder.

    Returns:
        An absolute address that ends with a slash; "" if there is neither.
    """
    try:
        stated = importlib.metadata.metadata(__package__.partition(".")[0])
    except importlib.metadata.PackageNotFoundError:  # a folder on the path, not installed
        lines: list[str] = []
    else:
        lines = stated.get_all("Project-URL") or []
    urls = {name.lower(): url for name, _, url in (line.partition(", ") for line in lines)}
    folder = guide_folder()
    found = urls.get("documentation") or (folder.as_uri() if folder else "")
    return found and f"{found.rstrip('/')}/"


def pages(folder: Path) -> dict[str, Path]:
    """Name of a page, without its ending -> its file."""
    files = sorted(folder.rglob("*.md"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in files}


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "")
