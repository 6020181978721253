"""The level `tpu-compiled`: the real TPU compiler compiles the step, without a TPU."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.replay.xla.diagnoses import diagnose, first_line
from estimator2strategy.engine.replay.xla.lowering import LoweringError, lower, recorded_node
from estimator2strategy.engine.xla import fit, hlo, tpus
from estimator2strategy.engine.xla.tpu_compiler import (
    SECONDS,
    Compiled,
    CompileStatus,
    MissingLibtpuError,
    TpuCompiler,
    cache_folder,
)
from estimator2strategy.engine.xla.tpus import Tpu
from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    LevelReport,
    Outcome,
    Verdict,
)
from estimator2strategy.tools.check.levels.check_error import CheckError
from estimator2strategy.tools.check.levels.compiling import Compiling, recorded_for, with_batch_size
from estimator2strategy.tools.check.levels.facts import Bar, Bars, Fact, Table, quantity
from estimator2strategy.tools.check.levels.subject import Subject
from estimator2strategy.tools.check.request import Mode

_LEVEL = Evidence.TPU_COMPILED
_COLUMNS = (
    *("TPU", "cores", "examples of a core", "verdict", "needs", "of"),
    *("FLOPs of a core's step", "compiled in (s)", "CPU (s)"),
)
_FITS = ("TPU", "largest batch of a core", "global batch", "does not fit", "compilations")
# Results that tell nothing: the compiler may be right, or the machine was slow.
_UNKNOWN = (CompileStatus.TIMED_OUT, CompileStatus.CRASHED)
# Results that guide the search for the largest batch.
_MEASURED = (CompileStatus.COMPILES, CompileStatus.TOO_LARGE)
# More ops than these say nothing about where the fault is.
_FEW = 3


@dataclasses.dataclass(frozen=True, eq=False)
class _Lowered:
    """A step as it is for TPUs of some number of devices.

    Attributes:
        step: The recorded step; None if it cannot be recorded.
        module: The input of compilers; empty if there is none.
        findings: The findings in the step that prevent one.
        said: The same in short.
        problem: The reason why the step cannot be examined; "" if it can.
    """

    step: Compiling | None
    module: bytes = b""
    findings: tuple[Finding, ...] = ()
    said: str = ""
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class _Answer:
    """The answer for one TPU.

    Attributes:
        tpu: The TPU.
        verdict: In short.
        findings: The findings in the step.
        problems: The things that could not be done.
        compiled: The compiler's answer; None where it was not asked.
        fitted: The search for the largest batch, if there was one.
        program: The compiled program.
    """

    tpu: Tpu
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()
    compiled: Compiled | None = None
    fitted: fit.Fit | None = None
    program: CoreProgram | None = None


def check(subject: Subject) -> LevelReport:
    """Compiles the train step for each TPU in `subject.options["tpu"]`."""
    known, unknown = tpus.parse(subject.options.get("tpu") or "")
    problems = [_no_such_tpu(name) for name in unknown]
    if not (known or unknown):
        problems.append("give --tpu, such as --tpu v3-8,v5e-4")
    answers: list[_Answer] = []
    if known:
        try:
            answers = _answers(subject, known, _compiler(subject.options))
        except MissingLibtpuError as error:
            problems.append(str(error))
    problems += [problem for answer in answers for problem in answer.problems]
    return LevelReport(
        _LEVEL,
        subject.name,
        verdicts=tuple(answer.verdict for answer in answers),
        findings=tuple(dict.fromkeys(f for answer in answers for f in answer.findings)),
        facts=tuple(_facts(answers)),
        problems=tuple(dict.fromkeys(problems)),
    )


def _no_such_tpu(name: str) -> str:
    return f"--tpu {name}: there is no such TPU; there are {', '.join(tpus.table())}"


def _compiler(options: Mapping[str, Any]) -> TpuCompiler:
    cache = None if options.get("no_tpu_cache") else cache_folder()
    return TpuCompiler(cache, options.get("tpu_time_limit") or SECONDS)


def _answers(subject: Subject, asked: list[Tpu], compiler: TpuCompiler) -> list[_Answer]:
    mode = Mode.TRAIN if Mode.TRAIN in subject.modes else subject.modes[0]
    lowered = {
        devices: _lowered(subject, mode, devices)
        for devices in dict.fromkeys(tpu.devices for tpu in asked)
    }
    return [_answer(subject, mode, tpu, lowered[tpu.devices], compiler) for tpu in asked]


def _lowered(subject: Subject, mode: Mode, devices: int) -> _Lowered:
    try:
        step = recorded_for(subject, mode, _LEVEL, devices)
    except CheckError as problem:
        return _Lowered(None, said="see the problems", problem=f"{devices} cores: {problem}")
    found = step.without_kernel()
    if found:
        return _Lowered(step, findings=tuple(found), said="XLA does not have all of its ops")
    try:
        return _Lowered(step, lower(step.program))
    except LoweringError as error:
        diagnosis = diagnose(error.text)
        refused = step.refused("E2S701", error.nodes, diagnosis, "XLA")
        return _Lowered(step, findings=(refused,), said=diagnosis.cause)


def _answer(
    subject: Subject, mode: Mode, tpu: Tpu, lowered: _Lowered, compiler: TpuCompiler
) -> _Answer:
    question = f"{mode}: compiles for a {tpu.name}"
    step = lowered.step
    if step is None:
        verdict = Verdict(question, Outcome.UNKNOWN, lowered.said)
        return _Answer(tpu, verdict, problems=(lowered.problem,))
    if not lowered.module:
        return _Answer(tpu, Verdict(question, Outcome.FAILED, lowered.said), lowered.findings)
    compiled = compiler.compile(tpu, lowered.module, step.program.replicas)
    outcome, said, findings, problems = _judged(step, compiled, lowered.module)
    fitted = None
    if subject.options.get("fit_batch") and compiled.status in _MEASURED:
        try:
            fitted = _fitted(subject, mode, compiled, compiler)
        except CheckError as problem:
            problems = (*problems, str(problem))
        except LoweringError as error:
            problems = (*problems, f"--fit-batch: {diagnose(error.text).cause}")
    verdict = Verdict(question, outcome, said)
    return _Answer(tpu, verdict, findings, problems, compiled, fitted, step.program)


def _judged(
    step: Compiling, compiled: Compiled, module: bytes
) -> tuple[Outcome, str, tuple[Finding, ...], tuple[str, ...]]:
    """The answer, the same in short, findings, and problems."""
    tpu, needs = compiled.tpu, _size(compiled.peak_bytes)
    if compiled.status is CompileStatus.COMPILES:
        return Outcome.PASSED, f"needs {needs} of {_size(tpu.hbm_bytes)}", (), ()
    diagnosis = diagnose(compiled.text)
    if compiled.status in _UNKNOWN:
        said = f"{diagnosis.cause}. {diagnosis.fix}" if diagnosis.fix else compiled.text
        return Outcome.UNKNOWN, first_line(compiled.text), (), (f"{tpu.name}: {said}",)
    if compiled.excess_bytes:
        said = f"needs {needs}, {_size(compiled.excess_bytes)} more than the core has"
        message = f"{step.recorded.mode}, {tpu.name}: {said} ({_size(tpu.hbm_bytes)})"
        return Outcome.FAILED, said, (step.at("E2S704", "", message),), ()
    rule = "E2S704" if compiled.status is CompileStatus.TOO_LARGE else "E2S703"
    nodes = _named(compiled.text, module, step.program)
    found = step.refused(rule, nodes, diagnosis, "the TPU's compiler")
    return Outcome.FAILED, diagnosis.cause, (found,), ()


def _size(size: int) -> str:
    return quantity(size, "bytes")


def _named(text: str, module: bytes, program: CoreProgram) -> list[str]:
    """The recorded nodes that a message of the compiler is about: by name, else by opcode."""
    words = set(re.findall(r"[\w.-]+", text))
    kinds = {word.lower() for word in words}
    by_name: dict[str, None] = {}
    by_opcode: dict[str, dict[str, None]] = {}
    for op_name, opcode, instruction in hlo.instructions(module):
        node = recorded_node(program, op_name)
        if node and (instruction.name in words or op_name in text):
            by_name[node] = None
        elif node and opcode in kinds:
            by_opcode.setdefault(opcode, {})[node] = None
    if by_name or not by_opcode:
        return list(by_name)
    rarest = min(by_opcode.values(), key=len)
    return list(rarest) if len(rarest) <= _FEW else []


# The largest batch.


def _fitted(subject: Subject, mode: Mode, first: Compiled, compiler: TpuCompiler) -> fit.Fit:
    tpu = first.tpu
    if mode != Mode.TRAIN or not subject.model.for_tpu or subject.batch_size is None:
        raise CheckError(
            "--fit-batch changes params['batch_size'], and these functions make batches of their "
            "own: they would have to take `params`, as a TPUEstimator's do, and train"
        )

    def compile_batch(batch: int) -> Compiled:
        resized = with_batch_size(subject, batch * tpu.devices)
        step = recorded_for(resized, mode, _LEVEL, tpu.devices)
        _check_batch(step.program, batch)
        return compiler.compile(tpu, lower(step.program), step.program.replicas)

    return fit.largest(compile_batch, subject.batch_size // tpu.devices, first)


def _check_batch(program: CoreProgram, batch: int) -> None:
    shapes = [program.spec(name).shape for name in program.feeds]
    if not any(shape.rank and shape[0] == batch for shape in shapes):
        raise CheckError(
            "--fit-batch: input_fn does not make batches of params['batch_size']: a core is given "
            f"{', '.join(map(str, shapes))}, where {batch} examples were asked for"
        )


# Facts.


def _facts(answers: list[_Answer]) -> list[Fact]:
    compiled = [(a, a.compiled) for a in answers if a.compiled is not None]
    facts: list[Fact] = []
    if compiled:
        facts.append(Table("what the TPU compiler says", _COLUMNS, tuple(map(_row, compiled))))
    bars = tuple(_bar(result) for _, result in compiled if result.peak_bytes)
    if bars:
        facts.append(Bars("memory of a core at its peak", "bytes", bars))
    fits = [(a.tpu, a.fitted) for a in answers if a.fitted is not None]
    if fits:
        rows = tuple(_fit_row(tpu, fitted) for tpu, fitted in fits)
        facts.append(Table("the largest batch that fits", _FITS, rows))
    return facts


def _bar(compiled: Compiled) -> Bar:
    over = compiled.excess_bytes
    note = f"{_size(over)} too much" if over else ""
    limit = float(compiled.tpu.hbm_bytes)
    return Bar(compiled.tpu.name, float(compiled.peak_bytes), limit, note)


def _row(given: tuple[_Answer, Compiled]) -> tuple[str | int | float, ...]:
    answer, compiled = given
    program = answer.program
    assert program is not None  # it was compiled
    shapes = [program.spec(name).shape for name in program.feeds]
    kept = " (kept)" if compiled.kept else ""
    return (
        answer.tpu.name,
        program.replicas,
        next((shape[0] for shape in shapes if shape.rank), ""),
        compiled.status.value,
        _size(compiled.peak_bytes) if compiled.peak_bytes else "not known",
        _size(answer.tpu.hbm_bytes),
        compiled.flops or "not known",
        f"{compiled.seconds:.1f}{kept}",
        f"{compiled.cpu_seconds:.1f}",
    )


def _fit_row(tpu: Tpu, fitted: fit.Fit) -> tuple[str | int, ...]:
    largest: str | int = fitted.batch or "none"
    if fitted.failed is not None:
        largest = f"{fitted.batch} or more: {fitted.failed.status.value} at {fitted.tried[-1][0]}"
    elif fitted.too_large is None:
        largest = f"{fitted.batch} or more"
    over = "" if fitted.too_large is None else fitted.too_large
    return tpu.name, largest, fitted.batch * tpu.devices, over, len(fitted.tried)
