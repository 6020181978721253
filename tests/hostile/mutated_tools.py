"""The tools that mutants are given to: what each is given, and the command that reads it."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from tests.hostile import mutants

_TESTS = Path(__file__).parents[1]
_GOLDEN = _TESTS / "goldens" / "parity_tf115"
_SOURCES = sorted((_TESTS / "programs").glob("*.py"))
_FORMATS = ("text", "json", "sarif", "github", "junit", "html")
_NAMES = (
    b"train.py",
    b"\xff\xfe.py",
    b"a\n::error file=x::pwned.py",
    "\u202e.py".encode(),
    b"\x1b[2J.py",
    b" .py",
)


class Tool(NamedTuple):
    """A tool of this package, and how it is tried.

    Attributes:
        name: As `e2s` knows it.
        module: The module whose `main(arguments)` it is.
        case: Writes a mutant into a folder; returns the arguments.
        at_once: How many mutants one process reads.
        seconds: The longest time for one mutant, on a machine that does other things too.
        share: Of the time.
    """

    name: str
    module: str
    case: Callable[[random.Random, str], list[str]]
    at_once: int
    seconds: int
    share: float


class Ended(NamedTuple):
    """How a tool ended: the exit code, or the error that it let pass."""

    code: int
    wrong: str = ""


def _tree(random: random.Random, folder: str) -> list[Path]:
    """A folder of one to three mutants of programs, that import each other by chance."""
    others = [path.read_bytes() for path in random.sample(_SOURCES, 2)]
    found = []
    for i in range(random.choice((1, 1, 3))):
        path = random.choice(_SOURCES)
        name = os.fsdecode(random.choice(_NAMES)) if random.random() < 0.2 else path.name
        made = Path(folder, name if i == 0 else path.name)
        made.write_bytes(mutants.text(random, path.read_bytes(), others))
        found.append(made)
    return found


def _check(random: random.Random, folder: str) -> list[str]:
    _tree(random, folder)
    target = random.choice(("facade", "tf2"))
    return [folder, "--target", target, "--format", random.choice(_FORMATS), "--notes"]


def _migrate(random: random.Random, folder: str) -> list[str]:
    _tree(random, folder)
    tier = random.choice(("safe", "review"))
    stage = random.choice((2, 2, 3, 4, 5, 6, 7, 8))
    write = ["--write", "--allow-dirty"] * (random.random() < 0.3)
    return [folder, "--stage", str(stage), "--tier", tier, *write]


def _verify(random: random.Random, folder: str) -> list[str]:
    golden = Path(folder, "golden")
    shutil.copytree(_GOLDEN, golden)
    for _ in range(random.choice((1, 1, 2))):
        kind = random.choice(
            ("golden.json", "golden.json", "batches.npz", "results.npz", "checkpoints")
        )
        if kind == "checkpoints":
            path = random.choice(sorted((golden / kind).iterdir()))
            path.write_bytes(mutants.binary(random, path.read_bytes()))
        else:
            mutate = mutants.document if kind == "golden.json" else mutants.arrays
            path = golden / kind
            path.write_bytes(mutate(random, path.read_bytes()))
        if kind != "golden.json" and random.random() < 0.95:
            _signed_again(golden, path)
    program = ["--program", str(_TESTS / "programs" / "verified.py")]
    form = random.choice(("text", "json", "junit", "html"))
    return [str(golden), "--cores", "0", "--format", form, *program]


def _signed_again(golden: Path, changed: Path) -> None:
    """Writes the checksum of a mutant into the golden, as somebody would who means it."""
    about = golden / "golden.json"
    with contextlib.suppress(Exception):  # it may be a mutant, too
        document = json.loads(about.read_bytes())
        name = changed.relative_to(golden).as_posix()
        document["sha256"][name] = hashlib.sha256(changed.read_bytes()).hexdigest()
        about.write_text(json.dumps(document))


_CHECKPOINTS: dict[str, Path] = {}


def _checkpoint(random: random.Random, folder: str) -> list[str]:
    kind = random.choice(("tf1", "tf2", "h5", "keras", "state", "map"))
    there = Path(folder, "there")
    shutil.copytree(_CHECKPOINTS[kind if kind in _CHECKPOINTS else "tf1"], there)
    path = random.choice(sorted(p for p in there.iterdir() if p.is_file()))
    if kind == "state":
        path = there / "checkpoint"
    argument = str(there) if kind not in ("h5", "keras") else str(path)
    what = random.choice(("inspect", "diff", "convert"))
    if kind == "map":
        path, what = Path(folder, "map.json"), "diff"
        rows = [{"source": "global_step", "target": "global_step", "how": "name", "scale": 1.0}]
        path.write_text(json.dumps({"rows": rows * 2}))
        path.write_bytes(mutants.document(random, path.read_bytes()))
    else:
        path.write_bytes(mutants.binary(random, path.read_bytes()))
    if what == "inspect":
        return [what, argument, *random.choice(([], ["--json"]))]
    if what == "convert":
        return [what, argument, str(Path(folder, "out", "model.ckpt-1")), "--to", "tf1"]
    mapping = ["--map", str(path)] if kind == "map" else []
    return [what, argument, str(_CHECKPOINTS["tf1"]), *mapping, *random.choice(([], ["--json"]))]


TOOLS = (
    Tool("check", "estimator2strategy.tools.check.check_command", _check, 40, 60, 0.25),
    Tool("migrate", "estimator2strategy.tools.migrate.migrate_command", _migrate, 20, 90, 0.25),
    Tool("verify", "estimator2strategy.tools.golden.verify", _verify, 1, 180, 0.25),
    Tool(
        "checkpoint",
        "estimator2strategy.tools.checkpoint.checkpoint_command",
        _checkpoint,
        8,
        90,
        0.25,
    ),
)


def prepare(names: Sequence[str], scratch: str) -> None:
    """Imports what the tools import, and makes the checkpoints, in another process.

    TensorFlow must not start its threads here: mutants are read in forks of this process.
    """
    for tool in TOOLS:
        if tool.name in names:
            importlib.import_module(tool.module)
    if "migrate" in names:
        from estimator2strategy.tools.migrate import preview as _
        from estimator2strategy.tools.migrate.codemod import codemods

        codemods()
    if {"verify", "checkpoint"} & set(names):
        from estimator2strategy.tools.checkpoint import checkpoint_report as _  # noqa: F401
    if "checkpoint" in names:
        child = os.fork()
        if not child:
            _make_checkpoints(Path(scratch))
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the checkpoints could not be made")
        _CHECKPOINTS.update({kind: Path(scratch, kind) for kind in ("tf1", "tf2", "h5", "keras")})


def _make_checkpoints(scratch: Path) -> None:
    """A folder of one small checkpoint of each kind."""
    import keras
    import tensorflow as tf

    shutil.copytree(_GOLDEN / "checkpoints", scratch / "tf1")
    name = '"model.ckpt-20"\n'
    (scratch / "tf1" / "checkpoint").write_text(f"model_checkpoint_path: {name}")
    model = keras.Sequential([keras.Input([6]), keras.layers.Dense(8), keras.layers.Dense(3)])
    model.compile(optimizer="adam", loss="mse")
    model.optimizer.build(model.trainable_variables)
    for kind, file in (("h5", "x.weights.h5"), ("keras", "x.keras")):
        (scratch / kind).mkdir()
        (model.save_weights if kind == "h5" else model.save)(scratch / kind / file)
    tf.train.Checkpoint(model=model).save(str(scratch / "tf2" / "ckpt"))


_RAW = re.compile(r"^Traceback \(most recent call last\)|please report it", re.MULTILINE)
# Texts that a log or a terminal would take for an instruction.
_INJECTED = re.compile(
    r"^\s*::error file=x|##vso\[|"
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]",
    re.M,
)


def ended(tool: Tool, arguments: list[str]) -> Ended:
    """Runs a tool on its arguments, in this process."""
    out, err = io.StringIO(), io.StringIO()
    main = importlib.import_module(tool.module).main
    try:
        with (
            tempfile.TemporaryFile("w+", errors="backslashreplace") as file,
            _fd2(file.fileno()),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.dict(os.environ, XDG_CACHE_HOME=os.path.dirname(arguments[0])),
        ):
            code = main(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 2
    except BaseException as error:
        return Ended(-1, f"{type(error).__name__}: {error} at {_place(error)}")
    said = out.getvalue() + err.getvalue()
    if match := _RAW.search(said):
        return Ended(code, said[match.start() :][-1500:])
    if match := _INJECTED.search(said.replace("\r\n", "\n")):
        return Ended(
            code, f"injected {match[0]!r}: {said[max(0, match.start() - 80) : match.end() + 80]!r}"
        )
    if code not in (0, 1, 2) or (code == 2 and not said.strip()):
        return Ended(code, f"exit code {code}, and it said {said[-300:]!r}")
    return Ended(code)


def _place(error: BaseException) -> str:
    frames = []
    trace = error.__traceback__
    while trace:
        frames.append(f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " ".join(frames[-6:])


@contextlib.contextmanager
def _fd2(file: int) -> Iterator[None]:
    """The messages of C++ go to a file."""
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
