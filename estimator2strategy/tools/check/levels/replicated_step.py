"""The level `replicated`: one step on emulated cores against one device, on the same batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.tools.check.check_report import (
    Evidence,
    Finding,
    LevelReport,
    Outcome,
    Verdict,
)
from estimator2strategy.tools.check.levels import difference_causes, inventory, memory
from estimator2strategy.tools.check.levels.check_error import CheckError, attempted
from estimator2strategy.tools.check.levels.differences import TensorDifference, compare
from estimator2strategy.tools.check.levels.facts import Fact, Number, Table
from estimator2strategy.tools.check.levels.findings import finding
from estimator2strategy.tools.check.levels.recorded_graph import Recorded
from estimator2strategy.tools.check.levels.step_in_parts import (
    Batch,
    Run,
    concatenated,
    running,
)
from estimator2strategy.tools.check.levels.subject import Subject
from estimator2strategy.tools.check.request import Mode

_LEVEL = Evidence.REPLICATED
# How many of the tensors that differ most are listed.
_LISTED = 20


def check(subject: Subject) -> LevelReport:
    """Compares each mode that runs on several cores."""
    verdicts: list[Verdict] = []
    findings: list[Finding] = []
    facts: list[Fact] = []
    problems: list[str] = []
    skipped: list[str] = []
    for mode in subject.modes:
        if mode != Mode.TRAIN and not subject.model.for_tpu:
            skipped.append(f"{mode}: an Estimator's runs on one device")
            continue
        question = f"{mode}: the same on {subject.cores} cores"
        try:
            found = _compare(subject, mode)
        except CheckError as problem:
            if difference_causes.UNEVEN_WORDS in str(problem):
                findings.append(_uneven(subject, mode, str(problem)))
                verdicts.append(Verdict(question, Outcome.FAILED, str(problem)))
                continue
            problems.append(str(problem))
            verdicts.append(Verdict(question, Outcome.UNKNOWN, "see the problems"))
            continue
        facts += found.facts(mode, subject.cores)
        findings += found.findings(subject)
        verdicts.append(Verdict(question, found.outcome, found.words))
    return LevelReport(
        _LEVEL,
        subject.name,
        tuple(verdicts),
        tuple(dict.fromkeys(findings)),
        tuple(facts),
        tuple(skipped),
        tuple(problems),
    )


@dataclasses.dataclass(frozen=True)
class Compared:
    """The result of comparing one mode.

    Attributes:
        examples: The number of examples in the batch.
        values: Name -> (on the cores, on one device) of the scalars to show.
        differences: Worst last, by the groups that are compared: loss, metrics, gradients...
        cause: The cause of the differences, if there are any.
        drifting: Variables that have another value on each core.
        random: A random op on which the loss depends, which prevents an answer.
    """

    examples: int
    values: Mapping[str, tuple[float, float]]
    differences: tuple[TensorDifference, ...] = ()
    cause: difference_causes.Cause | None = None
    drifting: tuple[tf.Operation, ...] = ()
    random: tf.Operation | None = None
    mode: Mode = Mode.TRAIN

    @property
    def outcome(self) -> Outcome:
        if self.random is not None:
            return Outcome.UNKNOWN
        return Outcome.FAILED if self.differences else Outcome.PASSED

    @property
    def words(self) -> str:
        if self.random is not None:
            return (
                f"it depends on random numbers ({self.random.type} {self.random.name!r}), which "
                "are others on each core. Give params without them (dropout 0)"
            )
        return self.cause.words if self.cause else ""

    def findings(self, subject: Subject) -> list[Finding]:
        root, model_fn = subject.root, subject.model.model_fn
        found = []
        if self.cause and self.random is None:
            cause = self.cause
            message = f"{self.mode}: {cause.words}"
            found.append(finding(cause.rule, cause.op, message, root, model_fn=model_fn))
        for op in self.drifting:
            message = f"after one step {op.name!r} has another value on each core"
            found.append(finding(difference_causes.DRIFTING, op, message, root, model_fn=model_fn))
        return found

    def facts(self, mode: Mode, cores: int) -> list[Fact]:
        rows = tuple((name, one, many) for name, (many, one) in self.values.items())
        made: list[Fact] = [
            Number(f"{mode}: compared on", self.examples, f"examples, {cores} cores"),
            Table(f"{mode}: one step", ("value", "one device", f"{cores} cores"), rows),
        ]
        told = self.differences if self.random is None else ()
        worst = sorted(told, key=lambda d: -d.relative)[:_LISTED]
        if worst:
            of = tuple(
                (d.name, f"{d.relative:.2g}", "" if d.ratio is None else f"{d.ratio:.4g}")
                for d in worst
            )
            columns = ("tensor", "relative difference", "times one device's")
            made.append(Table(f"{mode}: what differs", columns, of))
        return made


def _uneven(subject: Subject, mode: Mode, message: str) -> Finding:
    place = subject.inputs[mode]
    return finding(
        difference_causes.UNEVEN, place, message, subject.root, model_fn=subject.model.model_fn
    )


def _compare(subject: Subject, mode: Mode) -> Compared:
    """Runs a step of a mode on the cores and on one device.

    Raises:
        CheckError: It cannot be run, or not be compared.
    """
    cores = subject.recorded(mode, on_cores=True)
    one = subject.recorded(mode)
    take = inventory.variables_take(cores)
    # Gradients, and what an update reads and writes, are as large again.
    memory.require(2 * take * (subject.cores + 1), f"{subject.cores + 1} copies of the variables")
    with running(cores, subject.checkpoint) as run:
        batch = run.next_batch()
        initial = {name: values[0] for name, values in run.variables().items()}
        many = attempted(f"{mode} on the cores", lambda: _step(run, batch))
        drifting = _drifting(run)

        def values_on_cores(names: list[str]) -> dict[str, np.ndarray]:
            run.load(initial)
            return _values(run, names, batch)

        # In prediction one device is not given the labels, which come last.
        whole = concatenated(batch, subject.model.batch_axis)[: len(one.fed)]
        with running(one) as single:
            _check_shapes(mode, one, whole)
            single.load(initial)
            alone = attempted(f"{mode} on one device", lambda: _step(single, whole))

            def values_on_one(names: list[str]) -> dict[str, np.ndarray]:
                single.load(initial)
                return _values(single, names, whole)

            precision = difference_causes.precision(cores)
            differences = compare(many, alone, precision)
            cause = None
            random = difference_causes.random_op(cores) if differences else None
            if differences and random is None:
                cause = difference_causes.of(
                    cores, one, differences, values_on_cores, values_on_one, subject.cores
                )
    examples = int(np.shape(whole[0][0])[0]) if whole and np.ndim(whole[0][0]) else 1
    scalars = {
        name: (float(np.ravel(many[name])[0]), float(np.ravel(alone[name])[0]))
        for name in many
        if name in alone and np.size(many[name]) == 1 and not name.startswith("variable ")
    }
    return Compared(examples, scalars, tuple(differences), cause, drifting, random, mode)


def _step(run: Run, batch: Batch) -> dict[str, np.ndarray]:
    """Name -> value of all that is compared, after one step."""
    recorded, spec = run.recorded, run.recording.spec
    if recorded.mode == Mode.TRAIN:
        gradients = {
            f"gradient of {n}": t for n, t in difference_causes.gradients(recorded).items()
        }
        fetched, _ = run.step(({"loss": spec.loss, **gradients}, spec.train_op), batch)
        after = {f"variable {name}": values[0] for name, values in run.variables().items()}
        return {**_dense(fetched), **after}
    if recorded.mode == Mode.PREDICT:
        predictions = spec.predictions
        named = predictions if isinstance(predictions, dict) else {"predictions": predictions}
        return _dense(run.step(dict(named), batch))
    metrics = run.recording.metrics or spec.eval_metric_ops or {}
    fetched, _ = run.step(({"loss": spec.loss}, [pair[1] for pair in metrics.values()]), batch)
    values = {f"metric {name}": pair[0] for name, pair in metrics.items()}
    return {**fetched, **run.step(values, batch)} if values else fetched


def _dense(fetched: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Arrays of numbers; of a sparse gradient, which comes as one row for each use, none."""
    arrays = {n: np.asarray(v) for n, v in fetched.items() if not isinstance(v, tuple)}
    return {name: array for name, array in arrays.items() if array.dtype.kind not in "OSU"}


def _values(run: Run, names: list[str], batch: Batch) -> dict[str, np.ndarray]:
    """Tensor name -> value, of tensors inside of the model; of several cores the first's."""
    tensors = {name: run.recorded.graph.get_tensor_by_name(name) for name in names}
    values: dict[str, np.ndarray] = run.step(tensors, batch)
    return values


def _drifting(run: Run) -> tuple[tf.Operation, ...]:
    """The variables that are not the same on all cores any more."""
    graph = run.recorded.graph
    return tuple(
        graph.get_operation_by_name(name)
        for name, copies in run.variables().items()
        if any(not np.allclose(copies[0], copy, 1e-4, 1e-6, equal_nan=True) for copy in copies[1:])
    )


def _check_shapes(mode: Mode, one: Recorded, batch: Batch) -> None:
    """Raises CheckError unless one device takes the cores' parts as one batch."""
    for tensor, (value,) in zip(one.fed, batch, strict=True):
        if not tensor.shape.is_compatible_with(np.shape(value)):
            raise CheckError(
                f"{mode}: one device expects {tensor.shape} for {tensor.name!r}, and the batches "
                f"of all cores together are {np.shape(value)}. Let input_fn batch by "
                "params['batch_size'], or without drop_remainder."
            )
