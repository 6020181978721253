"""The shared part of the levels that compile or trace a step: a core's program, its findings."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.replay.xla.diagnoses import Diagnosis
from estimator2strategy.engine.xla.core_program import core_program, described, unsupported
from estimator2strategy.engine.xla.tpus import tpu_strategy
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tools.check.check_report import Evidence, Finding
from estimator2strategy.tools.check.levels.check_error import CheckError
from estimator2strategy.tools.check.levels.findings import finding
from estimator2strategy.tools.check.levels.recorded_graph import Recorded
from estimator2strategy.tools.check.levels.subject import Subject
from estimator2strategy.tools.check.request import Mode


@dataclasses.dataclass(frozen=True, eq=False)
class Compiling:
    """A step of a model, recorded for the cores of a TPU that is not there.

    Attributes:
        subject: The model.
        recorded: The recording of the mode.
        program: The program of one core.
        level: The evidence that findings rest on.
    """

    subject: Subject
    recorded: Recorded
    program: CoreProgram
    level: Evidence

    def without_kernel(self) -> list[Finding]:
        """A finding for each line and op that XLA cannot compile.

        Nothing was compiled to know it, and it is the same in all modes and for all compilers.
        """
        findings: dict[Finding, None] = {}
        for op in unsupported(self.program):
            made = self.at("E2S602", op.node, *described(op))
            findings[dataclasses.replace(made, evidence=Evidence.RECORDED)] = None
        return list(findings)

    def refused(self, rule: str, nodes: Iterable[str], diagnosis: Diagnosis, who: str) -> Finding:
        """The finding that `who` refuses the step, at the first of `nodes` or at model_fn."""
        message = f"{self.recorded.mode}: {who} refuses the step: {diagnosis.cause}"
        return self.at(rule, next(iter(nodes), ""), message, diagnosis.fix or None)

    def at(self, rule: str, node: str, message: str, fix: str | None = None) -> Finding:
        """A finding at the line that made a recorded node; at model_fn if `node` is empty."""
        return finding(
            rule,
            self.recorded.graph.get_operation_by_name(node) if node else None,
            message,
            self.subject.root,
            model_fn=self.subject.model.model_fn,
            fix=fix,
            evidence=self.level,
        )


def recorded_for(
    subject: Subject, mode: Mode, level: Evidence, cores: int, hosts: int = 1
) -> Compiling:
    """A mode as one core of `hosts` times `cores` sees it.

    Raises:
        CheckError: It cannot be recorded.
    """
    recorded = subject.recorded(mode, strategy=_strategy(hosts, cores))
    if recorded.recording is None:
        raise CheckError(f"{mode}: nothing was recorded")
    tensors, ops = _results(recorded)
    try:
        program = core_program(recorded.recording, tensors, ops)
    except UnsupportedError as error:
        raise CheckError(f"{mode}: {error}") from error
    return Compiling(subject, recorded, program, level)


@functools.cache
def _strategy(hosts: int, cores: int) -> tf.distribute.Strategy:
    """The same at every call: the subject keeps its recordings by it."""
    return tpu_strategy(hosts, cores)


def with_batch_size(subject: Subject, batch_size: int) -> Subject:
    """The same model, trained on other global batches. Only for a TPUEstimator's."""
    sizes = {**(subject.model.batch_sizes or {}), ModeKeys.TRAIN: batch_size}
    model = dataclasses.replace(subject.model, batch_sizes=sizes)
    return dataclasses.replace(subject, model=model, _cache={})


def _results(recorded: Recorded) -> tuple[list[tf.Tensor], list[tf.Operation]]:
    """The results of a step of a model that was recorded for the host; metrics are the host's."""
    spec = recorded.spec
    if recorded.mode == Mode.PREDICT:
        flat = tf.nest.flatten(spec.predictions, expand_composites=True)
        return [tensor for tensor in flat if isinstance(tensor, tf.Tensor)], []
    train_op = spec.train_op if recorded.mode == Mode.TRAIN else None
    if isinstance(train_op, tf.Tensor):
        train_op = train_op.op
    return [spec.loss], [train_op] if train_op is not None else []
