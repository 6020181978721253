"""The table of hostile trees: something odd beside a program, and what must come of it.

`e2s check` reads each tree in every format, on a terminal that knows ASCII alone, and `e2s migrate
--write` changes it. Neither may raise, wait, break a file, or print a line that a terminal or
a CI system takes for an instruction; both must name what they leave out, and still do their work on
the program beside it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock
from xml.etree import ElementTree

from estimator2strategy.tools.check import check_command
from estimator2strategy.tools.migrate import migrate_command
from tests.hostile.report import Report

# The program in each tree beside the odd thing, and what both tools say of it.
PROGRAM = "import tensorflow as tf\n\nx = tf.to_float(tf.constant(1))\ny = tf.Print(x, [x])\n"
MIGRATED = "tf.cast"
_SECONDS = 60
_NOBODY = 65534
_FORMATS = ("json", "sarif", "github", "junit", "html", "text")
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]"
)
_COMMAND = re.compile(r"(?m)^\s*::[\w-]+[^\n]*::|##(vso|teamcity)?\[")
_OURS = re.compile(
    r"::(error file=[^\n]*,line=|warning file=[^\n]*,line=|(error|notice) title=e2s check::)"
)


class Tree(NamedTuple):
    """A hostile tree.

    Attributes:
        name: What is odd.
        make: Makes it in a folder, beside `program.py`.
        check: What `e2s check` must say of it.
        migrate: What `e2s migrate` must say of it; None: the same.
        as_nobody: As a user who may not read everything.
    """

    name: str
    make: Callable[[Path], object]
    check: tuple[str, ...] = ()
    migrate: tuple[str, ...] | None = None
    as_nobody: bool = False


class Result(NamedTuple):
    """The faults in how a tree was read, one for each; and how long it took."""

    wrong: list[str]
    seconds: float


def areas() -> dict[str, tuple[Tree, ...]]:
    from tests.hostile import tree_rows

    return tree_rows.AREAS


def result_of(tree: Tree) -> Result:
    """Makes a tree in a folder of its own, and gives it to both tools."""
    start = time.monotonic()
    with _scratch() as scratch:
        folder = Path(scratch, "tree")
        folder.mkdir()
        (folder / "program.py").write_text(PROGRAM)
        tree.make(folder)
        before = _programs(folder)
        wrong = []
        with _as_nobody(folder) if tree.as_nobody else contextlib.nullcontext():
            for tool, says in ((_check, tree.check), (_migrate, tree.migrate)):
                expected = tree.check if says is None else says
                try:
                    with _alarm():
                        wrong += tool(folder, expected)
                except BaseException as error:  # what a tool let pass, or that it waits
                    wrong.append(f"{tool.__name__}: {type(error).__name__}: {error}")
        after = _programs(folder)
        wrong += [f"migrate broke {name}" for name in before if before[name] and not after[name]]
        if (outside := Path(scratch, "outside.py")).exists() and MIGRATED in outside.read_text():
            wrong.append("migrate changed a file outside of the tree")
    return Result(wrong, time.monotonic() - start)


@contextlib.contextmanager
def _scratch() -> Iterator[str]:
    """A folder that others may look into; Python could not delete the deepest of the trees."""
    # Below the folder of a session of pytest's, which is root's, nobody else may look.
    made = tempfile.mkdtemp(prefix="e2s_tree_", dir="/tmp" if os.geteuid() == 0 else None)
    os.chmod(made, 0o755)
    try:
        yield made
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", made], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", made], check=True)


def _check(folder: Path, says: tuple[str, ...]) -> list[str]:
    out = folder.parent / "reports"
    out.mkdir(exist_ok=True)
    outputs = [part for name in _FORMATS for part in ("--format", f"{name}={out / name}")]
    said, code = _run(
        check_command.main,
        [".", "--target", "tf2", "--notes", "--format", "text", *outputs],
        folder,
    )
    wrong = _harm("check", said, says)
    if code not in (1, 2):
        wrong.append(f"check: exit code {code}")
    if "E2S101" not in said and "tf.to_float" not in said:
        wrong.append("check: the program beside it was not read")
    for name in _FORMATS:
        try:
            text = (out / name).read_text(encoding="utf-8")
            wrong += [f"check, {name}: {found}" for found in _injected(text, name)]
            if name in ("json", "sarif"):
                json.loads(text)
            if name == "junit":
                ElementTree.fromstring(text)
        except (OSError, ValueError, ElementTree.ParseError) as error:
            wrong.append(f"check, {name}: {error!r}")
    return wrong


def _migrate(folder: Path, says: tuple[str, ...]) -> list[str]:
    arguments = [".", "--stage", "2", "--tier", "review", "--write", "--allow-dirty"]
    said, code = _run(migrate_command.main, arguments, folder)
    wrong = _harm("migrate", said, says)
    if code not in (0, 1, 2):
        wrong.append(f"migrate: exit code {code}")
    if MIGRATED not in (folder / "program.py").read_text():
        wrong.append(f"migrate: the program beside it was not changed: {said[-300:]!r}")
    left = [name for name in os.listdir(folder) if name.startswith(".e2s_")]
    return wrong + [f"migrate: left {name}" for name in left]


def _harm(tool: str, said: str, says: tuple[str, ...]) -> list[str]:
    wrong = [f"{tool}: {found}" for found in _injected(said, "text")]
    if "please report it" in said or "Traceback" in said:
        wrong.append(f"{tool}: {said[-300:]!r}")
    return wrong + [
        f"{tool}: does not say {what!r}: {said!r:.900}" for what in says if what not in said
    ]


def _injected(text: str, name: str) -> list[str]:
    """The parts of a text that act on what shows it."""
    if match := _ACTS.search(text.replace("\r\n", "\n")):
        return [f"prints {match[0]!r}"]
    lines = [match[0] for match in _COMMAND.finditer(text)]
    ours = _OURS if name == "github" else re.compile("(?!)")
    return [f"prints the command {line!r}" for line in lines if not ours.match(line.strip())]


def _run(main: Callable[[list[str]], int], arguments: list[str], folder: Path) -> tuple[str, int]:
    """Runs a tool in a folder, on a terminal that knows ASCII alone."""
    data = io.BytesIO()
    out = io.TextIOWrapper(data, encoding="ascii", errors="strict", write_through=True)
    before = os.getcwd()
    os.chdir(folder)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            mock.patch.dict(os.environ, XDG_CACHE_HOME=str(folder.parent / "cache")),
        ):
            code = main(arguments)
    finally:
        os.chdir(before)
    return data.getvalue().decode(), code


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError(f"it does not end within {_SECONDS} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _as_nobody(folder: Path) -> Iterator[None]:
    """Root may read everything; so that a tree has what may not be read, it is another's."""
    if os.geteuid() != 0:
        yield
        return
    for at, folders, names in os.walk(folder.parent):
        for name in (".", *folders, *names):
            os.chown(os.path.join(at, name), _NOBODY, _NOBODY, follow_symlinks=False)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def _programs(folder: Path) -> dict[str, bool]:
    """Each small file of Python in a tree -> True if Python can read it."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if name.endswith(".py") and len(path) < 4000 and _is_small_file(path):
                found[path] = _compiles(Path(path).read_bytes())
    return found


def _is_small_file(path: str) -> bool:
    here = os.lstat(path)
    return stat.S_ISREG(here.st_mode) and here.st_size < 100_000


def _compiles(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "odd.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def run() -> Report:
    """Reads all trees."""
    found = {area: [(tree, result_of(tree)) for tree in trees] for area, trees in areas().items()}
    wrong = [
        f"{area}: {tree.name}: {'; '.join(result.wrong)}"
        for area, rows in found.items()
        for tree, result in rows
        if result.wrong
    ]
    every = [result for rows in found.values() for _, result in rows]
    lines = [
        "Each tree is a folder with something odd beside a program. `e2s check` reads it in all",
        "six formats, on a terminal that knows ASCII alone, and `e2s migrate --write` changes the",
        "program. *Wrong* means that a command raised, took longer than a minute, did not name",
        "what it left out, broke a file, did not do its work on the program, or printed text that",
        "a terminal or a CI system would act on.",
        "",
        "| what is odd | trees | right | wrong |",
        "| --- | --- | --- | --- |",
    ]
    for area, rows in found.items():
        bad = sum(bool(result.wrong) for _, result in rows)
        lines.append(f"| {area} | {len(rows)} | {len(rows) - bad} | {bad} |")
    bad = sum(bool(result.wrong) for result in every)
    lines.append(f"| **all** | {len(every)} | {len(every) - bad} | {bad} |")
    return Report("Hostile trees", lines, wrong)


if __name__ == "__main__":
    sys.stdout.write("\n".join([*run().section, *run().wrong, ""]))
