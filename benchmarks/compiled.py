"""Measures what compiled code computes otherwise, and writes the tables of a page.

    python -m benchmarks.compiled            # migration_guide/compiled.md, in one to four minutes
    python -m benchmarks.compiled --print    # the tables only, on the terminal

The word of the TPU's compiler needs the package `libtpu`, and no TPU.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import datetime
import functools
import importlib.metadata
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.compiled_cases import SECTIONS, Case
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.engines.jit import on_host
from estimator2strategy.engine.xla import tpus
from estimator2strategy.engine.xla.tpu_compiler import Compiled, CompileStatus, TpuCompiler

PAGE = Path(__file__).resolve().parent.parent / "migration_guide" / "compiled.md"
BEGIN, END = "<!-- Tables: begin -->", "<!-- Tables: end -->"
TPU = "v5e-1"
SECONDS = 60.0  # of one compilation
_SHOWN = 6  # values of a cell
# The op in TensorFlow's message that XLA has no kernel for it.
_NO_KERNEL = re.compile(r"[:;] (\w+) \(No registered '\w+' OpKernel")
_SIZES = {
    "float32 [1024, 1]": ([1024, 1], tf.float32),
    "bfloat16 [1024, 1]": ([1024, 1], tf.bfloat16),
    "float32 [8, 128]": ([8, 128], tf.float32),
    "float32 scalar": ([], tf.float32),
}
# Ops of any draw, which tell nothing of where the numbers are drawn.
_BESIDE = frozenset({"Placeholder", "StatelessRandomGetAlg", "StatelessRandomGetKeyCounter"})
_TOPOLOGIES = ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1")


def main() -> None:
    """Writes the tables into the page, or prints them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--print", action="store_true", help="print the tables, change nothing")
    options = parser.parse_args()
    text = tables(TpuCompiler(seconds=SECONDS))
    print(text)
    if not options.print:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def tables(compiler: TpuCompiler) -> str:
    """All tables of the page, as Markdown."""
    found = {name: [measured(case) for case in cases] for name, cases in SECTIONS.items()}
    modules = {row.module for rows in found.values() for row in rows if row.module}
    ask = functools.partial(compiler.compile, tpus.table()[TPU], replicas=1)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = dict(zip(modules, pool.map(ask, modules), strict=True))
    parts = [_versions(compiler)]
    for name, rows in found.items():
        parts += [f"\n## {name}\n", f"| op | eager | compiled for the CPU | {TPU} | what we do |"]
        parts += ["| --- | --- | --- | --- | --- |", *(row.line(answers) for row in rows)]
    return "\n".join([*parts, "\n## Memory of an argument on a TPU\n", *_memory(compiler)])


def _versions(compiler: TpuCompiler) -> str:
    today = datetime.datetime.now(datetime.UTC).date()
    numpy = importlib.metadata.version("numpy")
    return (
        f"Measured on {today} with TensorFlow {tf.__version__}, NumPy {numpy} and libtpu "
        f"{compiler.version}, on a CPU of x86-64."
    )


@dataclasses.dataclass(frozen=True)
class Row:
    """A case as it was measured.

    Attributes:
        case: The case.
        eager: The second cell.
        compiled: The third.
        module: XLA's program of it, for the TPU's compiler; None if there is none.
        on_host: True if a step of `jit_compile=True` leaves the op to the host.
    """

    case: Case
    eager: str
    compiled: str
    module: bytes | None
    on_host: bool

    def line(self, answers: dict[bytes, Compiled]) -> str:
        word = _word(answers[self.module]) if self.module else "not asked"
        ours = "the host runs it with `jit_compile=True`" if self.on_host else ""
        ours = "; ".join(filter(None, (ours, self.case.ours))) or "nothing"
        cells = self.case.op, self.eager, self.compiled, word, ours
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def measured(case: Case) -> Row:
    """Runs a case in three ways, and lowers it."""
    arrays = [arg() if callable(arg) else arg for arg in case.args]
    args = [tf.constant(array) for array in arrays]

    def plain(*args: Any) -> Any:
        return case.function(*args)

    eager = _run(plain, args)
    graph = _run(tf.function(plain, autograph=False), args)
    function = tf.function(plain, autograph=False, jit_compile=True)
    compiled = _run(function, args)
    specs = [tf.TensorSpec(arg.shape, arg.dtype) for arg in args]
    try:
        module = function.experimental_get_compiler_ir(*specs)(stage="hlo_serialized")
    except (tf.errors.OpError, ValueError, TypeError):
        module = None
    cell = _show(eager, case.says)
    if not _equal(eager, graph):
        cell += f" (in a graph: {_show(graph, case.says)})"
    beside = _beside(compiled, eager if _equal(eager, graph) else graph, case.says)
    return Row(case, cell, beside, module, _is_on_host(plain, specs))


def _is_on_host(function: Callable[..., Any], specs: Sequence[tf.TensorSpec]) -> bool:
    with tf.Graph().as_default() as graph:
        function(*(tf.compat.v1.placeholder(spec.dtype, spec.shape) for spec in specs))
    recorded = RecordedGraph(graph)
    names = [node.name for node in recorded.nodes if node.op not in _BESIDE]
    return any(on_host(recorded, name) for name in names)


def _run(function: Callable[..., Any], args: Sequence[tf.Tensor]) -> list[np.ndarray] | str:
    """The values of a function, or how it fails."""
    try:
        return [tensor.numpy() for tensor in tf.nest.flatten(function(*args))]
    except (tf.errors.OpError, ValueError, NotImplementedError) as error:
        missing = _NO_KERNEL.search(str(error))
        return f"no program: {missing[1]}" if missing else f"raises {type(error).__name__}"


def _equal(one: list[np.ndarray] | str, other: list[np.ndarray] | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return all(map(functools.partial(np.array_equal, equal_nan=True), one, other))


def _show(result: list[np.ndarray] | str, says: bool) -> str:
    if isinstance(result, str):
        return result
    return ", ".join(map(_values, result)) if says else "runs"


def _values(array: np.ndarray) -> str:
    texts = [_number(value) for value in np.ravel(array)[:_SHOWN].tolist()]
    return texts[0] if np.size(array) == 1 else f"[{', '.join(texts)}]"


def _number(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _beside(compiled: list[np.ndarray] | str, eager: list[np.ndarray] | str, says: bool) -> str:
    if says or isinstance(compiled, str) or isinstance(eager, str):
        same = _equal(compiled, eager) and not isinstance(compiled, str)
        return "equal" if same else _show(compiled, says)
    if _equal(compiled, eager):
        return "equal"
    one, other = (np.concatenate([np.ravel(a) for a in arrays]) for arrays in (eager, compiled))
    one, other = one.astype(np.float64), other.astype(np.float64)
    if np.allclose(np.abs(one), np.abs(other), 1e-5, 1e-6) and not np.allclose(
        one, other, 1e-5, 1e-6
    ):
        return "equal but for signs"
    apart = np.abs(one - other)
    return f"{np.count_nonzero(apart)} of {apart.size} values differ, by {apart.max():.1g} at most"


def _word(answer: Compiled) -> str:
    """The answer of the TPU's compiler, as a cell."""
    if answer.status is CompileStatus.COMPILES:
        return "compiles" + (f" in {answer.cpu_seconds:.0f} s" if answer.cpu_seconds > 20 else "")
    if answer.status is CompileStatus.REFUSED:
        return f"refuses: {textwrap.shorten(answer.text, 100, placeholder=' ...')}"
    return answer.status.value


def _memory(compiler: TpuCompiler) -> list[str]:
    """The lines of a table: bytes of an argument, by TPU."""
    columns = ("v3-8", "v5e-1")
    lines = [f"| argument | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns)]
    for name, (shape, dtype) in _SIZES.items():
        spec = tf.TensorSpec(shape, dtype)
        function = tf.function(lambda x: x + x, autograph=False, jit_compile=True)
        module = function.experimental_get_compiler_ir(spec)(stage="hlo_serialized")
        found = [compiler.compile(tpus.table()[tpu], module, 1) for tpu in columns]
        lines.append(f"| {name} | {' | '.join(str(f.argument_bytes) for f in found)} |")
    takes = [name for name in _TOPOLOGIES if _takes(compiler, name, module)]
    return [*lines, f"\nThe compiler takes these topologies: {', '.join(takes)}."]


def _takes(compiler: TpuCompiler, topology: str, module: bytes) -> bool:
    tpu = dataclasses.replace(tpus.table()[TPU], name=topology, topology=topology)
    return compiler.compile(tpu, module, 1).fits


if __name__ == "__main__":
    main()
