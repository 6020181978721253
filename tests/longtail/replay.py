"""Replays rows of `migration_guide/programs.md`: a public program, on TensorFlow 1.15 and here.

    python -m tests.longtail.replay --mirrors /mirrors --tf115 /envs/tf115/bin/python [ROW ...]

`--mirrors` has a git folder `OWNER+NAME` (or `OWNER+NAME/repo`) of each repository. A row's files
are taken out at its commit, its data is made, and `probe.py` runs its program twice. It prints one
line for each row: how many numbers were compared, and the largest difference.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.longtail import rows

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("probe.py")
CLOSE = 1e-4  # relative to the larger of 1 and the number


def git_folder(mirrors: Path, repo: str) -> Path:
    base = mirrors / repo.replace("/", "+")
    choices = [base / "repo" / ".git", base / "repo", base / ".git", base]
    return next(path for path in choices if (path / "HEAD").exists())


def take_out(git: Path, row: rows.Row, target: Path) -> None:
    """Writes the files of a commit; those that a mirror leaves out (large ones) are skipped."""
    command = ["git", "-c", "safe.directory=*", "--git-dir", str(git)]
    listed = subprocess.run(
        [*command, "ls-tree", "-r", "-z", row.commit],
        capture_output=True,
        check=True,
    ).stdout
    for entry in filter(None, listed.split(b"\0")):
        meta, _, name = entry.partition(b"\t")
        mode, kind, blob = meta.decode().split()
        path = target / name.decode()
        wanted = path.suffix in rows.SUFFIXES or name.decode() in row.files
        if kind != "blob" or mode == "120000" or not wanted:
            continue
        got = subprocess.run([*command, "cat-file", "blob", blob], capture_output=True, check=False)
        if got.returncode == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(got.stdout)


def run(
    row: rows.Row,
    kind: str,
    folder: Path,
    arguments: argparse.Namespace,
    nudge: float = 0,
) -> tuple[dict, float, str]:
    """The record of a run, its seconds, and the end of what it printed where it failed."""
    python = {"tf115": arguments.tf115, "e2s": sys.executable}[kind]
    extra = {"tf115": arguments.tf115_path, "e2s": arguments.path}[kind]
    here = [str(ROOT)] if kind == "e2s" else []
    cwd = folder / row.folder
    path = [*here, *(str(folder / part) for part in row.path), *filter(None, [extra])]
    out = folder / f"{kind}.json"
    options = row.options if kind == "e2s" else ()
    env = {
        **os.environ,
        **row.env,
        "PYTHONPATH": os.pathsep.join(path),
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "PROBE_STEPS": str(row.steps),
        "PROBE_CALLS": str(row.calls),
        "PROBE_RUNS": str(row.runs),
        "PROBE_NUDGE": str(nudge),
    }
    start = time.monotonic()
    try:
        ran = subprocess.run(
            [*prefix(), python, str(PROBE), str(out), kind, *options, *shlex.split(row.program)],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=row.seconds * arguments.patience,
            check=False,
        )
        printed, code = ran.stdout.decode(errors="replace"), ran.returncode
    except subprocess.TimeoutExpired as error:
        printed, code = (error.stdout or b"").decode(errors="replace") + "\ntime limit", 1
    seconds = time.monotonic() - start
    (folder / f"{kind}.log").write_text(printed)
    if code:
        out.unlink(missing_ok=True)
    if code or not out.exists():
        return {}, seconds, "\n".join(printed.splitlines()[-12:]) or "no output"
    return json.loads(out.read_text()), seconds, ""


def prefix() -> list[str]:
    """A command that starts another: `nice`, a queue for the machine."""
    return shlex.split(os.environ.get("REPLAY_PREFIX", ""))


def numbers(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Each leaf of a record with the way to it."""
    if isinstance(value, dict) and "norm" in value:
        yield where, (value["sum"], value["norm"], tuple(value["shape"]))
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from numbers(value[key], f"{where}/{key}")
    elif isinstance(value, list):
        yield f"{where}#", len(value)
        for index, part in enumerate(value):
            yield from numbers(part, f"{where}/{index}")
    else:
        yield where, value


def difference(left: Any, right: Any) -> float:
    """How far two leaves are apart, inf if unequal; relative to the number, or where it is smaller

    to 1; of an array to its norm, or where that is smaller to 0.1.
    """
    both = (left, right)
    if all(isinstance(leaf, tuple) for leaf in both) and left[2] == right[2]:
        apart = max(abs(a - b) for a, b in zip(left[:2], right[:2], strict=True))
        same_nan = repr(left) == repr(right)
        return 0.0 if same_nan else apart / max(0.1, left[1]) if apart == apart else float("inf")
    if all(isinstance(leaf, (int, float)) for leaf in both):
        if any(leaf != leaf for leaf in both):
            return 0.0 if left != left and right != right else float("inf")
        return abs(left - right) / max(1.0, abs(left)) if left != right else 0.0
    return 0.0 if left == right else float("inf")


def compare(expected: dict, got: dict) -> dict[str, tuple[int, float, str]]:
    """For each kind of evidence: how many leaves, the largest difference, and where it is."""
    verdict = {}
    for part in parts(expected) | parts(got):
        left = dict(numbers(parts_of(expected, part)))
        right = dict(numbers(parts_of(got, part)))
        far = {key: difference(left.get(key), right.get(key)) for key in left.keys() | right.keys()}
        where = max(far, key=lambda key: (far[key], key), default="")
        verdict[part] = len(far), far.get(where, 0.0), where
    return verdict


def parts(record: dict) -> set[str]:
    return {part for part in (*KINDS, "runs", "variables", "tags") if parts_of(record, part)}


KINDS = {"train": "losses", "evaluate": "results", "predict": "results", "export": "signatures"}


# Names of ops that newer releases build otherwise; programs make tags of them.
RENAMED = {"dropout/mul_1_": "dropout/SelectV2_", "dense_1/truediv_": "dense_1/Softmax_"}


def parts_of(record: dict, part: str) -> Any:
    if part == "tags":
        renamed = (
            functools.reduce(lambda tag, old: tag.replace(old, RENAMED[old]), RENAMED, tag)
            for tag in record.get("tags", [])
        )
        return sorted(renamed)
    if part in KINDS:
        calls = record.get("calls", [])
        return [call[KINDS[part]] for call in calls if call["call"] == part]
    return record.get(part)


def replay(row: rows.Row, arguments: argparse.Namespace) -> str:
    base = arguments.work / row.name
    known = base / "tf115" / "tf115.json"
    kept = json.loads(known.read_text()) if arguments.keep and known.exists() else None
    shutil.rmtree(base / "e2s", ignore_errors=True)
    if kept is None:
        shutil.rmtree(base, ignore_errors=True)
    git = git_folder(arguments.mirrors, row.repo)
    records = {}
    times = []
    failures = []
    for kind in ("tf115", "e2s"):
        if kind == "tf115" and kept is not None:
            records[kind] = kept
            times.append(0.0)
            continue
        folder = base / kind
        fill(row, git, folder, arguments)
        records[kind], seconds, failure = run(row, kind, folder, arguments)
        times.append(seconds)
        if failure:
            failures.append(f"{kind} failed:\n{failure}")
    took = f"[{times[0]:.0f} s, {times[1]:.0f} s]"
    if failures:
        return f"{row.name}: FAILED {took}\n" + "\n".join(failures)
    verdict = compare(records["tf115"], records["e2s"])
    far = [part for part, (_, apart, _) in verdict.items() if apart > row.close]
    chaos = noise(row, arguments, base) if far else {}
    shown = []
    for part, (count, apart, where) in sorted(verdict.items()):
        own = compare_to(records["tf115"], chaos, part)
        shown.append(f"{part} {count}: {apart:.1e}" + (f" (own {own:.1e})" if part in far else ""))
        if part in far and apart <= 4 * own:
            far.remove(part)
        elif part in far:
            shown.append(f"at {where}")
    word = "DIFFERS" if far or not verdict else "noisy" if chaos else "equal"
    return f"{row.name}: {word} {took} {', '.join(shown)}"


def noise(row: rows.Row, arguments: argparse.Namespace, base: Path) -> dict:
    """TensorFlow 1.15's record where all that stands for chance is 1.2e-7 larger.

    What then differs, rounding decides: Adam makes a whole step of a gradient that is zero but for
    rounding, as that of a bias before a batch norm.
    """
    folder = base / "noise"
    known = folder / "tf115.json"
    if arguments.keep and known.exists():
        return json.loads(known.read_text())
    shutil.rmtree(folder, ignore_errors=True)
    fill(row, git_folder(arguments.mirrors, row.repo), folder, arguments)
    return run(row, "tf115", folder, arguments, nudge=1.2e-7)[0]


def compare_to(expected: dict, nudged: dict, part: str) -> float:
    return compare(expected, nudged).get(part, (0, 0.0, ""))[1] if nudged else 0.0


def fill(row: rows.Row, git: Path, folder: Path, arguments: argparse.Namespace) -> None:
    """Puts a row's files and data into a folder."""
    folder.mkdir(parents=True)
    take_out(git, row, folder)
    for other in row.beside:
        source = git_folder(arguments.mirrors, other.partition("@")[0])
        beside = dataclasses.replace(row, commit=other.partition("@")[2], files=())
        take_out(source, beside, folder / "beside")
    if row.data:
        before = os.getcwd()
        os.chdir(folder / row.folder)
        try:
            row.data()
        finally:
            os.chdir(before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--tf115", required=True, help="the Python of TensorFlow 1.15")
    parser.add_argument("--tf115_path", default="", help="packages for it")
    parser.add_argument("--path", default="", help="packages for the Python here")
    parser.add_argument("--keep", action="store_true", help="do not run TensorFlow 1.15 again")
    parser.add_argument(
        "--patience", type=float, default=1, help="times a row's seconds, on a busy machine"
    )
    parser.add_argument("--work", type=Path, default=Path("/tmp/longtail/work"))
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_args()
    unequal = 0
    for row in rows.ROWS:
        if not arguments.rows or row.name in arguments.rows:
            line = replay(row, arguments)
            unequal += ": equal" not in line and ": noisy" not in line
            print(line, flush=True)
    return min(unequal, 100)


if __name__ == "__main__":
    sys.exit(main())
