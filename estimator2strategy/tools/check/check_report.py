"""The report of a check: findings, their evidence, and the places that were not checked.

Example:

    report.findings[0].rule          # "E2S201"
    report.levels[0].verdicts        # what one level of evidence says of one model
    report.exit_code(Severity.ERROR) # 0: none at or above it; 1: some; 2: could not check
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

from estimator2strategy.tools.reader.python_files import NotChecked

if TYPE_CHECKING:
    from estimator2strategy.tools.check.levels.facts import Fact


class Severity(enum.IntEnum):
    """The weight of a finding; comparable."""

    INFO = 1  # works, and is worth knowing
    WARNING = 2  # may fail, or mean something else than it did
    ERROR = 3  # fails, or gives other numbers, wherever it is reached

    def __str__(self) -> str:
        return self.name.lower()


class Evidence(enum.IntEnum):
    """The evidence behind a verdict, weakest first; a weaker one never stands for a stronger."""

    STATIC = 1
    RECORDED = 2
    CPU_COMPILED = 3
    REPLICATED = 4
    VERIFIED = 5
    TPU_TRACED = 6
    TPU_COMPILED = 7
    TPU_RUN = 8

    @property
    def words(self) -> str:
        return _WORDS[self]

    @property
    def option(self) -> str:
        """Its name in `--levels`."""
        return self.name.lower().replace("_", "-")


_WORDS = {
    Evidence.STATIC: "static: the source was read, nothing was run",
    Evidence.RECORDED: "recorded: model_fn and input_fn were called once, and their graph was read",
    Evidence.CPU_COMPILED: "compiled by XLA for the CPU",
    Evidence.REPLICATED: "replicated on emulated cores",
    Evidence.VERIFIED: "verified: what an older TensorFlow did was replayed from a golden",
    Evidence.TPU_TRACED: "traced under a TPUStrategy",
    Evidence.TPU_COMPILED: "compiled by the TPU compiler",
    Evidence.TPU_RUN: "ran on a TPU",
}


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One thing at one place.

    Attributes:
        path: Relative to where the check was started, with `/`.
        line, column: From 1; `column` in characters.
        rule: "E2S201".
        severity: Its weight here, which may differ from the rule's default.
        message: The problem at this place.
        fix: The remedy.
        symbol: The function or class it is in, "" at the top of the file.
        text: The line, with single spaces; with path, rule and symbol it identifies the finding.
    """

    path: str
    line: int
    column: int
    rule: str
    severity: Severity
    message: str
    fix: str = ""
    symbol: str = ""
    text: str = ""
    evidence: Evidence = Evidence.STATIC

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The part of a finding that stays when lines above it change."""
        return (self.rule, self.path, self.symbol, self.text)


class Outcome(enum.Enum):
    """The answer of a verdict."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "cannot tell"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The answer of a level of evidence to one question.

    Attributes:
        question: In a few words, with the mode: "train: records", "train: fits a v3-8".
        outcome: The answer.
        message: The reason; "" where the answer says it all.
    """

    question: str
    outcome: Outcome
    message: str = ""


@dataclasses.dataclass(frozen=True)
class LevelReport:
    """The report of one level of evidence on one model.

    Attributes:
        level: The evidence that all of this rests on.
        subject: The model, as the user named it.
        verdicts: Its answers; a finding or a problem says more about a `failed` one.
        findings: Its findings, each with `evidence=level`.
        facts: The things that it measured or counted.
        not_checked: The parts that it could not see.
        problems: The reasons why it could not do its job, if it could not.
        seconds: Wall time.
    """

    level: Evidence
    subject: str
    verdicts: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    facts: tuple[Fact, ...] = ()
    not_checked: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def said(self) -> list[str]:
        """Each verdict, and what was not checked, in a line that names the level."""
        lines = []
        for verdict in self.verdicts:
            why = f" ({verdict.message})" if verdict.message else ""
            lines.append(f"{self.level.option}: {verdict.question}: {verdict.outcome.value}{why}")
        return lines + [f"{self.level.option}: not checked: {what}" for what in self.not_checked]


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of one check.

    Attributes:
        findings: The findings that count, by path and line: neither suppressed nor in the baseline.
        files: The files that were read.
        target: The TensorFlow that the program is to run on; see `settings.Target`.
        evidence: The highest level that was reached.
        not_checked: Places that could not be judged.
        beyond: The questions that no check of this level can answer.
        suppressed: The number of findings that a comment in the source silences.
        baselined: The number of findings in the baseline.
        problems: The reasons why the tool could not do its job, if it could not.
        seconds: Wall time.
        levels: The reports of the levels above static, model by model.
    """

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    target: str
    evidence: Evidence = Evidence.STATIC
    not_checked: tuple[NotChecked, ...] = ()
    beyond: tuple[str, ...] = ()
    suppressed: int = 0
    baselined: int = 0
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    levels: tuple[LevelReport, ...] = ()

    @property
    def not_reached(self) -> tuple[Evidence, ...]:
        """The levels above static that no model was taken through, where there is a model."""
        reached = {level.level for level in self.levels}
        above = [level for level in Evidence if level > Evidence.STATIC]
        return tuple(level for level in above if reached and level not in reached)

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def exit_code(self, fail_on: Severity | None) -> int:
        """0 clean, 1 findings at or above `fail_on` (None: never), 2 the check is incomplete."""
        if self.problems:
            return 2
        return int(fail_on is not None and any(f.severity >= fail_on for f in self.findings))

    @property
    def verdict(self) -> str:
        """One line, with the evidence it rests on."""
        counts = [
            f"{self.count(s)} {s}{'s' if self.count(s) != 1 and s != Severity.INFO else ''}"
            for s in sorted(Severity, reverse=True)
            if self.count(s)
        ]
        found = ", ".join(counts) or "nothing found"
        files = f"{len(self.files)} file{'s' if len(self.files) != 1 else ''}"
        if not self.levels:
            return f"{found} in {files} ({self.evidence.words})"
        names = ", ".join(dict.fromkeys(level.subject for level in self.levels))
        return f"{found} in {files} and {names} ({self._reached()})"

    def _reached(self) -> str:
        """The levels of which all went well, and those of which some did not."""
        done = {Evidence.STATIC} if self.files else set()
        failed = {level.level for level in self.levels if level.problems}
        done |= {level.level for level in self.levels} - failed
        parts = [", ".join(level.option for level in sorted(done))] if done else []
        if failed:
            names = ", ".join(level.option for level in sorted(failed))
            parts.append(f"not done: {names}")
        return "; ".join(parts)
