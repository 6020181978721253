"""The level `cpu-compiled`: XLA compiles the step of each mode for the CPU."""

from __future__ import annotations

from estimator2strategy.engine.replay.xla.diagnoses import diagnose
from estimator2strategy.engine.replay.xla.lowering import LoweringError, compile_for_cpu
from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    LevelReport,
    Outcome,
    Verdict,
)
from estimator2strategy.tools.check.levels.check_error import CheckError
from estimator2strategy.tools.check.levels.compiling import recorded_for
from estimator2strategy.tools.check.levels.facts import Fact, Number
from estimator2strategy.tools.check.levels.subject import Subject

_LEVEL = Evidence.CPU_COMPILED


def check(subject: Subject) -> LevelReport:
    """Names all ops of each mode that XLA does not have; compiles those modes that have none."""
    verdicts: list[Verdict] = []
    findings: list[Finding] = []
    facts: list[Fact] = []
    problems: list[str] = []
    for mode in subject.modes:
        question = f"{mode}: compiles for the CPU"
        try:
            step = recorded_for(subject, mode, _LEVEL, subject.cores)
        except CheckError as problem:
            verdicts.append(Verdict(question, Outcome.UNKNOWN, "see the problems"))
            problems.append(str(problem))
            continue
        found = step.without_kernel()
        said = "XLA does not have all of its ops"
        if not found:
            try:
                seconds = compile_for_cpu(step.program)
            except LoweringError as error:
                diagnosis = diagnose(error.text)
                found.append(step.refused("E2S701", error.nodes, diagnosis, "XLA"))
                said = diagnosis.cause
            else:
                facts.append(Number(f"{mode}: XLA compiled it in", seconds, "seconds"))
        outcome = Outcome.FAILED if found else Outcome.PASSED
        verdicts.append(Verdict(question, outcome, said if found else ""))
        findings += found
    return LevelReport(
        _LEVEL,
        subject.name,
        verdicts=tuple(verdicts),
        findings=tuple(dict.fromkeys(findings)),
        facts=tuple(facts),
        problems=tuple(problems),
    )
