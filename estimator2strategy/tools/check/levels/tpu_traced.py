"""The level `tpu-traced`: the train function is traced under a genuine TPUStrategy."""

from __future__ import annotations

from estimator2strategy.engine.replay.xla.diagnoses import first_line
from estimator2strategy.engine.worlds import legacy_world
from estimator2strategy.engine.xla.tpu_program import TpuProgram, train_program
from estimator2strategy.engine.xla.tpu_trace import Mismatch, differences
from estimator2strategy.errors import EstimatorToStrategyError
from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    LevelReport,
    Outcome,
    Verdict,
)
from estimator2strategy.tools.check.levels.check_error import CheckError
from estimator2strategy.tools.check.levels.compiling import Compiling, recorded_for, with_batch_size
from estimator2strategy.tools.check.levels.facts import Fact, Table
from estimator2strategy.tools.check.levels.subject import Subject
from estimator2strategy.tools.check.request import Mode

_LEVEL = Evidence.TPU_TRACED
_CORES = 8  # of a host
_HOSTS = (1, 2)
_COLUMNS = ("TPU", "replicas", "ops of a core", "sums over cores", "variables", "batch tensors")


def check(subject: Subject) -> LevelReport:
    """Traces training on one host and on two, with eight cores each."""
    if Mode.TRAIN not in subject.modes:
        why = "only the train function is traced, and there is no input_fn for it"
        return LevelReport(_LEVEL, subject.name, not_checked=(why,))
    verdicts: list[Verdict] = []
    findings: list[Finding] = []
    problems: list[str] = []
    rows = []
    for hosts in _HOSTS:
        question = f"train: can be sent to a TPU of {hosts} x {_CORES} cores"
        try:
            step = recorded_for(_of_hosts(subject, hosts), Mode.TRAIN, _LEVEL, _CORES, hosts)
        except CheckError as problem:
            verdicts.append(Verdict(question, Outcome.UNKNOWN, "see the problems"))
            problems.append(f"{hosts} x {_CORES} cores: {problem}")
            continue
        sent, wrong = _traced(step)
        outcome = Outcome.FAILED if wrong else Outcome.PASSED
        said = "; ".join(difference.sentence for difference in wrong)
        verdicts.append(Verdict(question, outcome, said))
        findings += [step.at("E2S702", w.node, f"train: {w.sentence}") for w in wrong]
        if sent is not None:
            rows.append(_row(hosts, sent))
    facts: tuple[Fact, ...] = (Table("what a TPU would be sent", _COLUMNS, tuple(rows)),)
    return LevelReport(
        _LEVEL,
        subject.name,
        verdicts=tuple(verdicts),
        findings=tuple(dict.fromkeys(findings)),
        facts=facts if rows else (),
        problems=tuple(problems),
    )


def _of_hosts(subject: Subject, hosts: int) -> Subject:
    """The subject with as large a batch for each host as the only one would have."""
    size = subject.batch_size
    return subject if size is None or hosts == 1 else with_batch_size(subject, size * hosts)


def _traced(step: Compiling) -> tuple[TpuProgram | None, list[Mismatch]]:
    """The program that is sent, and its mismatches."""
    recording = step.recorded.recording
    assert recording is not None  # `recorded_for` saw to it
    try:
        with legacy_world(), recording.graph.as_default():
            sent = train_program(recording)
    except EstimatorToStrategyError as error:
        return None, [Mismatch(str(error))]
    except Exception as error:
        return None, [Mismatch(f"{type(error).__name__}: {first_line(str(error))}")]
    return sent, differences(sent, step.program)


def _row(hosts: int, sent: TpuProgram) -> tuple[str | int, ...]:
    return (
        f"{hosts} x {_CORES} cores",
        sent.replicas,
        len(sent.nodes),
        len(sent.ops("CrossReplicaSum")),
        len(sent.variables),
        len(sent.batch),
    )
