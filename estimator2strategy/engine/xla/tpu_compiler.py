"""Compiles a step for TPUs that are not there, each in a process of its own.

    from estimator2strategy.engine.xla import tpus
    from estimator2strategy.engine.replay.xla.lowering import lower

    compiler = TpuCompiler(cache=cache_folder())
    result = compiler.compile(tpus.table()["v3-8"], lower(program), replicas=8)
    result.peak_bytes, result.tpu.hbm_bytes

libtpu may hang, and a failed check inside of it ends the process. So the process has a time limit,
and its output is kept. A result is cached under a hash of the program and of the compiler.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from estimator2strategy.engine.xla import hlo
from estimator2strategy.engine.xla.pjrt import INSTALL, libtpu_path
from estimator2strategy.engine.xla.tpus import Tpu

SECONDS = 1800.0  # of one program; BERT-base takes minutes
# Part of the key of what is kept; to be raised when results mean something else.
_VERSION = 1
# The message of a program that is too large, in GiB or MiB.
_TOO_LARGE = re.compile(r"\(([\d.]+)([KMGT])\) exceeds available HBM \(([\d.]+)([KMGT])\)")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class CompileStatus(enum.Enum):
    """The end of a compilation."""

    COMPILES = "compiles"
    TOO_LARGE = "does not fit into memory"
    REFUSED = "is refused by the compiler"
    TIMED_OUT = "was given up"
    CRASHED = "ended the compiler"


@dataclasses.dataclass(frozen=True)
class Compiled:
    """The answer of a TPU's compiler on a program; all figures of one device.

    Attributes:
        tpu: The TPU.
        status: The end of the compilation.
        peak_bytes: Memory that the program needs at its peak, arguments included; 0 if unknown.
        argument_bytes: Of it, variables and the batch.
        flops: Floating-point operations of a step; 0.0 if unknown.
        seconds: The time that the compiler took.
        cpu_seconds: The same, of one core of this machine.
        text: The compiler's message, where it did not compile.
        kept: True if all this is from an earlier check.
    """

    tpu: Tpu
    status: CompileStatus
    peak_bytes: int = 0
    argument_bytes: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    text: str = ""
    kept: bool = False

    @property
    def fits(self) -> bool:
        return self.status is CompileStatus.COMPILES

    @property
    def excess_bytes(self) -> int:
        """The bytes by which it exceeds the memory of a device."""
        over = self.peak_bytes - self.tpu.hbm_bytes
        return max(over, 0) if self.status is CompileStatus.TOO_LARGE else 0


class MissingLibtpuError(Exception):
    """The TPU compiler is not installed; the message says how to."""


@dataclasses.dataclass(frozen=True)
class TpuCompiler:
    """The compiler in the package `libtpu`.

    Attributes:
        cache: Folder in which results are kept; None: they are not.
        seconds: Time limit of one program.
        library: libtpu's shared library.
        version: Of the package.
    """

    cache: Path | None = None
    seconds: float = SECONDS
    library: Path = dataclasses.field(default_factory=lambda: _library())
    version: str = dataclasses.field(default_factory=lambda: importlib.metadata.version("libtpu"))

    def compile(self, tpu: Tpu, module: bytes, replicas: int) -> Compiled:
        """Compiles a step for `replicas` devices of `tpu`, or finds what came of it before.

        Args:
            module: A serialised HloModuleProto, as `lowering.lower` makes it.
        """
        key = self._key(tpu, module, replicas)
        compiled = self._kept(key)
        if compiled is None:
            compiled = self._run(tpu, module, replicas)
            self._keep(key, compiled)
            return _compiled(tpu, compiled)
        return dataclasses.replace(_compiled(tpu, compiled), kept=True)

    def _run(self, tpu: Tpu, module: bytes, replicas: int) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="e2s-tpu-") as name:
            folder = Path(name)
            request = {
                "libtpu": str(self.library),
                "topology": tpu.topology,
                "options": {"chip_config_name": tpu.chip_config} if tpu.chip_config else {},
                "replicas": replicas,
            }
            (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
            (folder / "module.hlo").write_bytes(module)
            started = time.monotonic()
            ended = _in_process(folder, self.seconds)
            seconds = time.monotonic() - started
            result = folder / "result.json"
            if result.is_file():
                return _read(result)
            said = (folder / "said.txt").read_text(encoding="utf-8", errors="replace")
            if ended is None:
                text = f"It was not done after {self.seconds:.0f} seconds (the time limit)."
                return {"code": "TIMED_OUT", "text": text, "seconds": seconds}
            lines = "\n".join(said.strip().splitlines()[-20:])
            text = f"libtpu {self.version} ended its process ({_how(ended)}).\n{lines}"
            return {"code": "CRASHED", "text": text.strip(), "seconds": seconds}

    def _key(self, tpu: Tpu, module: bytes, replicas: int) -> str:
        what = (_VERSION, self.version, tpu.topology, tpu.chip_config, replicas)
        return hashlib.sha256(f"{what}".encode() + hlo.fingerprint(module)).hexdigest()

    def _kept(self, key: str) -> dict[str, Any] | None:
        try:
            if self.cache is not None:
                return _read(self.cache / f"{key}.json")
        except (OSError, ValueError):
            pass  # not there, or not whole: compiled anew
        return None

    def _keep(self, key: str, result: dict[str, Any]) -> None:
        if self.cache is None or result["code"] in _OF_THIS_MACHINE:
            return
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            part = self.cache / f"{key}.{os.getpid()}.part"
            part.write_text(json.dumps(result), encoding="utf-8")
            part.replace(self.cache / f"{key}.json")
        except OSError:
            pass  # a folder that cannot be written to costs time, and no result


def _read(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def cache_folder() -> Path:
    """The folder of kept results: in the user's cache folder, after the XDG base directories."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "estimator2strategy" / "tpu"


def _library() -> Path:
    path = libtpu_path()
    if path is None:
        raise MissingLibtpuError(
            "The TPU compiler is not installed. It is in the package libtpu (a download of 200 MB; "
            f"no TPU is needed):\n  {INSTALL}"
        )
    return path


def _in_process(folder: Path, seconds: float) -> int | None:
    """Runs the worker on `folder`; returns its exit code, None if it was stopped."""
    command = [sys.executable, "-m", "estimator2strategy.engine.xla.worker", str(folder)]
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with (folder / "said.txt").open("wb") as said:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                env=environment, timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
    return done.returncode


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


_STATUSES = {
    "OK": CompileStatus.COMPILES,
    "RESOURCE_EXHAUSTED": CompileStatus.TOO_LARGE,
    "TIMED_OUT": CompileStatus.TIMED_OUT,
    "CRASHED": CompileStatus.CRASHED,
    "UNAVAILABLE": CompileStatus.CRASHED,
    "ABORTED": CompileStatus.CRASHED,
}
# Another time it may end otherwise.
_OF_THIS_MACHINE = frozenset(_STATUSES) - {"OK", "RESOURCE_EXHAUSTED"}


def _compiled(tpu: Tpu, result: dict[str, Any]) -> Compiled:
    status = _STATUSES.get(result["code"], CompileStatus.REFUSED)
    took = {name: result.get(name, 0.0) for name in ("seconds", "cpu_seconds")}
    if status is not CompileStatus.COMPILES:
        peak = needed_bytes(result["text"]) if status is CompileStatus.TOO_LARGE else 0
        return Compiled(tpu, status, peak, text=result["text"], **took)
    memory, costs = result["memory"], result["costs"]
    return Compiled(
        tpu,
        status,
        memory["peak_memory_in_bytes"],
        memory["argument_size_in_bytes"],
        costs.get("flops", 0.0),
        **took,
    )


def needed_bytes(text: str) -> int:
    """The bytes that a program needs, from the message that it does not fit; 0 if not said."""
    match = _TOO_LARGE.search(text)
    return int(float(match[1]) * _UNITS[match[2]]) if match else 0
